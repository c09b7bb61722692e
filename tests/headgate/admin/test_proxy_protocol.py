"""The PROXY protocol in front of requests for readiness."""

from __future__ import annotations

import asyncio
import struct

import pytest

from headgate.admin.proxy_protocol import MAX_TEXT, SIGNATURE, header_length
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, WebServer

TEXT = b"PROXY TCP4 192.0.2.7 192.0.2.8 5000 15021\r\n"
BINARY = SIGNATURE + b"\x21\x11" + struct.pack("!H", 12) + bytes(12)
LOCAL = SIGNATURE + b"\x20\x00\x00\x00"
REQUEST = b"GET /r HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("header", [TEXT, BINARY, LOCAL, b"PROXY UNKNOWN\r\n"])
def test_it_is_measured_however_it_arrives(header: bytes) -> None:
    whole = header + REQUEST
    for size in range(1, len(header)):
        assert header_length(whole[:size]) is None
    for size in range(len(header), len(whole) + 1):
        assert header_length(whole[:size]) == len(header)


@pytest.mark.parametrize("data", [REQUEST, b"PROPFIND / HTTP/1.1\r\n", b"\r\nGET /", b"\x16\x03\x01", b"PROXX "])
def test_anything_else_is_none(data: bytes) -> None:
    assert header_length(data) == 0


@pytest.mark.parametrize("data", [b"PROXY " + b"x" * MAX_TEXT, SIGNATURE + b"\x11\x11\x00\x00"])
def test_a_broken_one_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="header"):
        header_length(data)


def test_a_server_passes_it_over() -> None:
    async def ready(_request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, b"ready\n")

    async def main() -> None:
        server = WebServer(lambda: (AdminRoute("GET", "/r", ready),), proxy_protocol=True)
        await server.listen(("127.0.0.1",), 0)

        async def ask(*pieces: bytes) -> bytes:
            reader, writer = await asyncio.open_connection(*server._servers[0].sockets[0].getsockname())
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            found = await reader.read()
            writer.close()
            return found

        for header in (b"", TEXT, BINARY, LOCAL):
            assert (await ask(header + REQUEST)).endswith(b"ready\n")
            assert (await ask(header, REQUEST)).endswith(b"ready\n")
        assert await ask(b"PROXY " + b"x" * 200 + REQUEST) == b""
        await server.close()

    asyncio.run(main())
