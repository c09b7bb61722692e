"""Messages to a receiver: its status comes back, and neither silence nor nonsense holds the sender up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from headgate.net.webhook import WebhookFailure, post

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def posted(answer: bytes | None, *, seconds: float = 60.0, path: str = "/hook?a=b") -> tuple[int, bytes]:
    """What post() returns, and what the receiver got. None: it says nothing."""
    got = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        got.extend(head + await reader.readexactly(2))
        if answer is None:
            await reader.read()
        else:
            writer.write(answer)
            await writer.drain()
        writer.close()

    async def run() -> int:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            port = server.sockets[0].getsockname()[1]
            return await post(f"http://127.0.0.1:{port}{path}", [("x-own", "1")], b"{}", seconds)
        finally:
            server.close()

    return asyncio.run(run()), bytes(got)


def test_a_message_is_posted_and_its_status_comes_back() -> None:
    status, got = posted(b"HTTP/1.1 204 No Content\r\n\r\n")
    assert status == 204
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert b"content-length: 2" in head.lower()
    assert b"x-own: 1" in head.lower()
    assert body == b"{}"
    # An answer that goes on is not read.
    assert posted(b"HTTP/1.1 500 Broken\r\ncontent-length: 1000000\r\n\r\nx")[0] == 500
    assert posted(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", path="")[0] == 200


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000])
def test_what_is_no_answer_is_a_failure(answer: bytes) -> None:
    with pytest.raises(WebhookFailure):
        posted(answer)


def test_a_receiver_that_is_silent_or_away_is_a_failure() -> None:
    with pytest.raises(WebhookFailure, match=r"no answer within 0\.2 seconds"):
        posted(None, seconds=0.2)

    async def nobody() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        await post(f"http://127.0.0.1:{port}/secret", [], b"{}", 60)

    with pytest.raises(WebhookFailure) as found:
        asyncio.run(nobody())
    assert "secret" not in str(found.value)


@pytest.mark.parametrize("host", ["a..test", "a" * 64 + ".test"])
def test_a_host_that_no_name_can_be_is_a_failure(host: str) -> None:
    with pytest.raises(WebhookFailure, match="label"):
        asyncio.run(post(f"http://{host}/hook", [], b"{}", 60))
