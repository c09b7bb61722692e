"""Servers that break HTTP/2: whatever they say, every exchange ends, and nothing is kept."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from headgate.net.http2 import MAX_FRAME, Http2Connection
from headgate.net.http2_exchange import Headers, Http2Error, TooLarge

HEAD: Headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"a.test"), (b":path", b"/")]
SETTINGS = b"\0\0\0\4\0\0\0\0\0"


class Wire(asyncio.Transport):
    """Keeps what is written and tells of the end, as a socket does."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written += data

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def close(self) -> None:
        self.closed = True

    abort = close


def connected() -> tuple[Http2Connection, Wire, list[Http2Connection]]:
    lost: list[Http2Connection] = []
    connection, wire = Http2Connection(lost.append), Wire()
    connection.connection_made(wire)
    connection.data_received(SETTINGS)
    assert connection.ready.done()
    return connection, wire, lost


def served(connection: Http2Connection, wire: Wire) -> H2Connection:
    """The server's side of a connection, with what has come so far."""
    server = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    server.initiate_connection()
    server.receive_data(bytes(wire.written))
    wire.written.clear()
    return server


def run(test: Callable[[], object]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await test()  # type: ignore[misc]

    asyncio.run(main())


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


@pytest.mark.parametrize("seed", range(40))
def test_noise_ends_exchanges(seed: int) -> None:
    async def work() -> None:
        draw = random.Random(seed)
        connection, wire, lost = connected()
        task = asyncio.get_running_loop().create_task(connection.exchange(HEAD, b"x" * 100_000, 1000))
        await asyncio.sleep(0)
        for _ in range(60):
            payload = draw.randbytes(draw.choice((0, 4, 5, 8, 40, 400)))
            connection.data_received(frame(draw.randrange(12), draw.randrange(256), draw.choice((0, 1, 2, 3)), payload))
            await asyncio.sleep(0)
        connection.connection_lost(None)
        with pytest.raises(Http2Error):
            await task
        assert not connection.usable
        assert wire.closed
        assert connection in lost

    run(work)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame(4, 0, 0, bytes(MAX_FRAME + 1)), "a frame is too large"),
        (frame(7, 0, 0, b"short"), "a GOAWAY is cut short"),
        (frame(0, 0, 1, b"x"), "broke the protocol"),
        (frame(1, 4, 1, b"\xff" * 50), "broke the protocol"),
        (frame(8, 0, 0, b"\x7f\xff\xff\xff"), "broke the protocol"),
        (frame(5, 4, 1, b"\0\0\0\2" + b"\x88"), "broke the protocol"),
    ],
)
def test_breaches_are_named(data: bytes, words: str) -> None:
    async def work() -> None:
        connection, _, lost = connected()
        task = asyncio.get_running_loop().create_task(connection.exchange(HEAD, b"", 1000))
        await asyncio.sleep(0)
        connection.data_received(data)
        with pytest.raises(Http2Error, match=words) as caught:
            await task
        assert not caught.value.unsent
        assert lost == [connection]

    run(work)


def test_what_is_no_http2() -> None:
    async def work() -> None:
        connection = Http2Connection(lambda _connection: None)
        connection.connection_made(Wire())
        connection.data_received(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        with pytest.raises(Http2Error, match="this is not HTTP/2") as caught:
            await connection.ready
        assert caught.value.unsent

    run(work)


def test_large_answers_and_cancelled_exchanges_are_reset() -> None:
    async def work() -> None:
        connection, wire, _ = connected()
        loop = asyncio.get_running_loop()
        large = loop.create_task(connection.exchange(HEAD, b"", 10))
        given_up = loop.create_task(connection.exchange(HEAD, b"x", 10))
        await asyncio.sleep(0)
        server = served(connection, wire)
        server.send_headers(1, [(":status", "200")])
        server.send_data(1, b"x" * 11)
        connection.data_received(server.data_to_send())
        with pytest.raises(TooLarge, match="more than 10 bytes"):
            await large
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        server.receive_data(bytes(wire.written))
        assert server.open_inbound_streams == 0
        assert connection.usable

    run(work)


def test_goaway_tells_what_may_be_sent_again() -> None:
    async def work() -> None:
        connection, wire, lost = connected()
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(connection.exchange(HEAD, b"", 10)) for _ in range(2)]
        await asyncio.sleep(0)
        server = served(connection, wire)
        connection.data_received(frame(7, 0, 0, (1).to_bytes(4) + (0).to_bytes(4) + b"bye"))
        with pytest.raises(Http2Error) as caught:
            await tasks[1]
        assert caught.value.unsent
        assert lost
        assert not connection.usable
        with pytest.raises(Http2Error) as caught:
            await connection.exchange(HEAD, b"", 10)
        assert caught.value.unsent
        server.send_headers(1, [(":status", "200")], end_stream=True)
        connection.data_received(server.data_to_send())
        assert (await tasks[0]).headers == [(b":status", b"200")]
        assert wire.closed

    run(work)


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        monkeypatch.setattr("headgate.net.http2.QUIET_S", 0.05)
        monkeypatch.setattr("headgate.net.http2.ANSWER_S", 0.05)
        connection, wire, lost = connected()
        with pytest.raises(Http2Error, match="the server does not answer"):
            await connection.exchange(HEAD, b"", 10)
        assert lost
        assert wire.closed
        assert wire.written.count(b"\0\0\x08\6\0\0\0\0\0") >= 1, "it was asked"

    run(work)
