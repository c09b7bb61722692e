"""Requests of the page to the gateway's own ports, and to nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headgate.admin import relay as relaying
from headgate.admin.relay import InvalidRelayRequest, read_relay_request, relay
from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway


def gateway(port: int = 3000) -> Gateway:
    text = f"gateways: {{default: {{port: {port}}}}}\nroutes: [{{name: a, policies: {{directResponse: {{status: 200}}}}}}]\n"
    return load(TextSource(text)).gateway


def order(port: int = 3000, **fields: Any) -> bytes:
    return json.dumps({"bind": f"bind/{port}", **fields}).encode()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"no", "not JSON"),
        (b"[]", "expected an object"),
        (b"\xff", "not JSON"),
        (b"{}", "bind"),
        (order(80), "bind"),
        (b'{"bind": "127.0.0.1:22"}', "bind"),
        (b'{"bind": ["bind/3000"]}', "bind"),
        (order(address="10.0.0.1"), "expected an object"),
        (order(url="http://evil.example"), "expected an object"),
        (order(method="CONNECT"), "method"),
        (order(method="GET / HTTP/1.1\r\nx: y\r\n\r\n"), "method"),
        (order(method=1), "method"),
        (order(path="http://evil.example/"), "path"),
        (order(path=""), "path"),
        (order(path="/a b"), "path"),
        (order(path="/a\r\nhost: b"), "path"),
        (order(path="/" + "a" * 9000), "path"),
        (order(path="/\u00e4"), "path"),
        (order(host="a b"), "host"),
        (order(host="a\r\nx: y"), "host"),
        (order(host="user@evil"), "host"),
        (order(host=""), "host"),
        (order(headers=[]), "headers"),
        (order(headers={"a": 1}), "headers"),
        (order(headers={"a b": "c"}), "headers"),
        (order(headers={"": "c"}), "headers"),
        (order(headers={"a": "b\r\nc: d"}), "headers"),
        (order(headers={"a": "b\x00"}), "headers"),
        (order(headers={f"h{i}": "" for i in range(33)}), "headers"),
        (order(body={}), "body"),
        *[
            (order(headers={name: "x"}), f"{name.lower()} cannot be sent")
            for name in ("Host", "Cookie", "Connection", "Transfer-Encoding", "Content-Length", "Upgrade", "Origin",
                         "Forwarded", "X-Forwarded-For", "x-forwarded-host", "Sec-Fetch-Site", "Proxy-Authorization")
        ],
    ],
)  # fmt: skip
def test_what_is_not_an_order_for_a_port_of_ours_is_refused(body: bytes, word: str) -> None:
    with pytest.raises(InvalidRelayRequest, match=word):
        read_relay_request(body, gateway())


def test_an_order_is_read() -> None:
    found = read_relay_request(
        order(method="POST", path="/v1/x?a=b", host="api.test:8080", headers={"Authorization": "Bearer x"}, body="\u00e4"),
        gateway(),
    )
    assert (found.bind.port, found.method, found.target, found.host) == (3000, "POST", "/v1/x?a=b", "api.test:8080")
    assert found.headers == (("authorization", "Bearer x"),)
    assert found.body == "\u00e4".encode()
    assert read_relay_request(order(), gateway())[1:] == ("GET", "/", "localhost", (), b"")


def run(answer: Callable[[bytes, asyncio.StreamWriter], Awaitable[None]], **fields: Any) -> list[dict[str, Any]]:
    """The lines for an order to a port where `answer` gets the request's head and body."""

    async def main() -> list[dict[str, Any]]:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            if b"content-length: " in head.lower():
                head += await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            await answer(head, writer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        found = [json.loads(line) async for line in relay(read_relay_request(order(port, **fields), gateway(port)))]
        server.close()
        return found

    return asyncio.run(main())


def says(text: bytes) -> Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]:
    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()

    return answer


def test_head_pieces_and_end_come_as_lines() -> None:
    seen = []

    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        seen.append(head)
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nset-cookie: a=b\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in (b"3\r\nab\xc3\r\n", b"2\r\n\xa4c\r\n", b"1\r\n\xff\r\n", b"0\r\n\r\n"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)

    lines = run(answer, method="POST", path="/x", host="a.test", headers={"x-a": "1"}, body="hi")
    assert seen[0].startswith(b"POST /x HTTP/1.1\r\n")
    assert b"\r\nhost: a.test\r\n" in seen[0].lower()
    assert seen[0].endswith(b"\r\n\r\nhi")
    assert lines[0]["status"] == 201
    assert "".join(one.get("data", "") for one in lines) == "ab\u00e4c\ufffd", "a letter cut in two is one letter"
    assert lines[-1]["end"] is True


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"", "server closed connection|no answer|closed"),
        (b"nonsense\r\n\r\n", "no answer from port"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc", "no answer from port"),
    ],
)
def test_a_broken_answer_ends_in_an_error(text: bytes, error: str) -> None:
    import re

    assert re.search(error, run(says(text))[-1]["error"])


def test_a_long_answer_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaying, "MAX_ANSWER", 10)
    lines = run(says(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n12345678901"))
    assert "longer than 10 bytes" in lines[-1]["error"]


def test_a_silent_port_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relaying, "SILENCE_SECONDS", 0.05)

    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.sleep(1)

    assert run(answer)[-1] == {"error": "the gateway did not answer in time"}


def test_a_port_that_nobody_serves_is_told() -> None:
    async def main() -> list[bytes]:
        server = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return [line async for line in relay(read_relay_request(order(port), gateway(port)))]

    lines = asyncio.run(main())
    assert len(lines) == 1
    assert "no answer from port" in json.loads(lines[0])["error"]
