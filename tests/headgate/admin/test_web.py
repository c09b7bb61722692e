"""The operator's HTTP server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from headgate.admin import web
from headgate.admin.web import AdminRequest, AdminResponse, AdminRoute, AdminStream, WebServer

PATIENCE = 30


class Endless:
    """A stream that tells when it is closed."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.closed = asyncio.Event()

    async def run(self) -> AsyncGenerator[bytes, None]:
        try:
            for piece in self.pieces:
                yield piece
            await asyncio.Event().wait()
        finally:
            self.closed.set()


async def page(_request: AdminRequest) -> AdminResponse:
    return AdminResponse(200, b"a page", "text/html")


async def broken(_request: AdminRequest) -> AdminResponse:
    raise ValueError("secret detail")


async def finite(_request: AdminRequest) -> AdminStream:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"one "
        yield b"two"

    return AdminStream(pieces(), "text/plain")


async def query(request: AdminRequest) -> AdminResponse:
    return AdminResponse(200, f"{request.method} {sorted(request.query.items())}".encode())


def serve(test: Callable[[int], Awaitable[None]], *rows: AdminRoute) -> None:
    """Run `test` with the port of a server of these rows and the usual ones."""

    async def main() -> None:
        usual = (
            AdminRoute("GET", "/", page, page=True),
            AdminRoute("GET", "/broken", broken),
            AdminRoute("GET", "/finite", finite),
            AdminRoute("GET", "/query", query),
            AdminRoute("POST", "/query", query),
            AdminRoute("GET", "/debug/query", query),
        )
        server = WebServer(lambda: (*rows, *usual), allowed=lambda: frozenset(("http://localhost:3000",)), check_host=True)
        await server.listen(("127.0.0.1",), 0)
        port = server._servers[0].sockets[0].getsockname()[1]
        async with asyncio.timeout(PATIENCE):
            await test(port)
        await server.close()

    asyncio.run(main())


async def talk(port: int, text: str) -> str:
    """Send raw text; everything that comes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.replace("\n", "\r\n").encode())
    found = (await reader.read()).decode()
    writer.close()
    return found


@pytest.mark.parametrize(
    ("line", "fields", "start"),
    [
        ("GET /", "", "HTTP/1.1 200"),
        ("HEAD /", "", "HTTP/1.1 200"),
        ("GET /", "sec-fetch-site: cross-site\nsec-fetch-mode: navigate\n", "HTTP/1.1 200"),
        ("GET /query", "sec-fetch-site: cross-site\nsec-fetch-mode: navigate\n", "HTTP/1.1 403"),
        ("POST /query", "origin: http://evil.example\n", "HTTP/1.1 403"),
        ("POST /query", "origin: http://localhost:3000\n", "HTTP/1.1 200"),
        # Pages on other ports of this machine are as foreign as any.
        ("POST /query", "origin: http://localhost:19000\n", "HTTP/1.1 403"),
        ("GET /query", "sec-fetch-site: same-site\n", "HTTP/1.1 403"),
        ("OPTIONS /query", "origin: http://localhost:19000\naccess-control-request-method: POST\n", "HTTP/1.1 403"),
        ("OPTIONS /query", "origin: http://localhost:3000\naccess-control-request-method: POST\n", "HTTP/1.1 200"),
        ("OPTIONS /query", "origin: http://evil.example\naccess-control-request-method: POST\n", "HTTP/1.1 403"),
        ("GET /absent", "", "HTTP/1.1 404"),
        ("DELETE /query", "", "HTTP/1.1 405"),
        ("HEAD /query", "", "HTTP/1.1 200"),
        ("HEAD /debug/query", "", "HTTP/1.1 405"),
        ("GET /", "x: " + "y" * 100000 + "\n", "HTTP/1.1 431"),
        ("GET /", "content-length: a\n", "HTTP/1.1 400"),
    ],
)
def test_requests(line: str, fields: str, start: str) -> None:
    async def test(port: int) -> None:
        assert (await talk(port, f"{line} HTTP/1.1\nhost: localhost:1\nconnection: close\n{fields}\n")).startswith(start)

    serve(test)


def test_a_rebound_name_is_refused_before_anything_else() -> None:
    async def test(port: int) -> None:
        text = f"POST /query HTTP/1.1\nhost: evil.example:{port}\norigin: http://evil.example:{port}\n"
        assert (await talk(port, text + "connection: close\n\n")).startswith("HTTP/1.1 421")

    serve(test)


def test_a_fault_shows_its_kind_only() -> None:
    async def test(port: int) -> None:
        found = await talk(port, "GET /broken HTTP/1.1\nhost: localhost\nconnection: close\n\n")
        assert found.startswith("HTTP/1.1 500")
        assert found.endswith("ValueError\n")
        assert "secret" not in found

    serve(test)


def test_a_stream_ends_with_its_source() -> None:
    async def test(port: int) -> None:
        found = await talk(port, "GET /finite HTTP/1.1\nhost: localhost\n\n")
        assert "transfer-encoding: chunked" in found.lower()
        assert found.endswith("\r\n\r\n4\r\none \r\n3\r\ntwo\r\n0\r\n\r\n")
        old = await talk(port, "GET /finite HTTP/1.0\n\n")
        assert old.endswith("\r\n\r\none two")

    serve(test)


def test_a_stream_is_closed_when_its_client_has_gone() -> None:
    async def main() -> None:
        endless = Endless([b"first"])

        async def handler(_request: AdminRequest) -> AdminStream:
            return AdminStream(endless.run(), "text/plain", (), b".")

        server = WebServer(lambda: (AdminRoute("GET", "/endless", handler),))
        await server.listen(("127.0.0.1",), 0)
        reader, writer = await asyncio.open_connection(*server._servers[0].sockets[0].getsockname())
        writer.write(b"GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await reader.readuntil(b"first")
        assert not endless.closed.is_set()
        writer.close()
        async with asyncio.timeout(PATIENCE):
            await endless.closed.wait()
        await server.close()

    asyncio.run(main())


def test_a_client_that_closes_its_own_side_only_gets_the_rest() -> None:
    async def main() -> None:
        go = asyncio.Event()

        async def handler(_request: AdminRequest) -> AdminStream:
            async def pieces() -> AsyncGenerator[bytes, None]:
                yield b"first"
                await go.wait()
                yield b"last"

            return AdminStream(pieces(), "text/plain", (), b".")

        server = WebServer(lambda: (AdminRoute("GET", "/s", handler),))
        await server.listen(("127.0.0.1",), 0)
        reader, writer = await asyncio.open_connection(*server._servers[0].sockets[0].getsockname())
        writer.write(b"GET /s HTTP/1.1\r\nhost: localhost\r\n\r\n")
        writer.write_eof()
        await reader.readuntil(b"first")
        await reader.readuntil(b".")        # a probe: it was noticed
        go.set()
        async with asyncio.timeout(PATIENCE):
            assert b"last" in await reader.read()
        writer.close()
        await server.close()

    asyncio.run(main())


class Working:
    """Work that ends when it is told to, and tells when it was given up."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.given_up = asyncio.Event()

    async def run(self) -> AdminResponse:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        return AdminResponse(200, b"made", headers=(("x-made", "1"),))

    async def handle(self, _request: AdminRequest) -> AdminResponse:
        return AdminResponse(200, work=self.run)


def test_work_ends_when_its_client_has_gone() -> None:
    working = Working()

    async def test(port: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /work HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await working.begun.wait()
        writer.close()
        async with asyncio.timeout(PATIENCE):
            await working.given_up.wait()

    serve(test, AdminRoute("GET", "/work", working.handle))


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_work_goes_on_for_a_client_that_closes_its_own_side_only(version: str) -> None:
    working = Working()

    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /work HTTP/{version}\r\nhost: localhost\r\n\r\n".encode())
        writer.write_eof()
        await working.begun.wait()
        if version == "1.1":
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 102")
        working.go.set()
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
        assert b"HTTP/1.1 200" in answer
        assert b"x-made: 1" in answer
        assert answer.endswith(b"made")
        assert (b"102" in answer) <= (version == "1.1")
        writer.close()

    serve(test, AdminRoute("GET", "/work", working.handle))


def test_the_next_request_may_come_while_work_goes_on() -> None:
    working = Working()

    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /work HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await working.begun.wait()
        writer.write(b"GET /query HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        working.go.set()
        async with asyncio.timeout(PATIENCE):
            assert (await reader.read()).count(b"HTTP/1.1 200") == 2
        writer.close()

    serve(test, AdminRoute("GET", "/work", working.handle))


@pytest.mark.parametrize(
    ("sent", "start"),
    [
        (b"GET //[ HTTP/1.1\r\nhost: localhost\r\n\r\n", b"HTTP/1.1 400"),
        (b"GET http://[/query HTTP/1.1\r\nhost: localhost\r\n\r\n", b"HTTP/1.1 400"),
        (b"POST /query HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n", b"HTTP/1.1 100"),
        (b"POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5000000\r\n\r\n" + b"x" * 5_000_000, b"HTTP/1.1 413"),
    ],
    ids=["target", "absolute target", "expect", "too large"],
)
def test_what_is_odd_is_answered(sent: bytes, start: bytes) -> None:
    async def test(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(PATIENCE):
            assert (await reader.read(len(start))) == start
        writer.close()

    serve(test)


def test_a_head_that_came_in_time_is_read_however_late_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 1.0)

    async def late(port: int) -> None:
        before = len(asyncio.all_tasks())
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # Until the server has the connection, and waits for its head.
        while len(asyncio.all_tasks()) == before:  # noqa: ASYNC110 (nothing tells)
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        writer.write(b"GET /query HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        # Nothing of this process has run until the time was over.
        loop = asyncio.get_running_loop()
        began = loop.time
        monkeypatch.setattr(loop, "time", lambda: began() + 5.0)
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()

    serve(late)


def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.05)

    async def silent(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /query HTTP/1.1\r\nhost: ")
        assert await reader.read() == b""
        writer.close()

    serve(silent)


async def _stalled(server: WebServer) -> asyncio.StreamWriter:
    """Return the client's side of a connection that asks for more than sockets hold, and reads none of it."""
    await server.listen(("127.0.0.1",), 0)
    _, client = await asyncio.open_connection(*server._servers[0].sockets[0].getsockname())
    transport = client.transport
    assert isinstance(transport, asyncio.Transport)
    transport.pause_reading()
    while not any(_waits(writer.transport) for writer in server._connections):
        client.write(b"GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await asyncio.sleep(0.001)
    return client


def _waits(transport: asyncio.WriteTransport) -> bool:
    """Tell whether drain() waits for the client."""
    return transport.get_write_buffer_size() > transport.get_write_buffer_limits()[1]


async def large(_request: AdminRequest) -> AdminResponse:
    return AdminResponse(200, b"x" * (1 << 22))


def test_a_connection_is_closed_once_its_queue_has_been_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "CLOSE_SECONDS", PATIENCE)

    async def main() -> None:
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"x" * (1 << 23))
            try:
                ended.set_result(await web._hang_up(writer))
            except Exception as error:
                ended.set_exception(error)

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            assert len(await reader.read()) == 1 << 23
            await ended
            writer.close()

    asyncio.run(main())


@pytest.mark.parametrize("end", ["the time is over", "the process ends"])
def test_a_client_that_does_not_read_is_not_waited_for(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "CLOSE_SECONDS", 0.05)
    if end == "the time is over":
        monkeypatch.setattr(web, "WRITE_SECONDS", 0.5)

    # A connection that nobody knows would be closed by the collector.
    clients = []

    async def main() -> None:
        server = WebServer(lambda: (AdminRoute("GET", "/large", large),))
        client = await _stalled(server)
        clients.append(client)
        if end == "the time is over":
            # The reset tells it, even though it does not read.
            while not client.transport.is_closing():
                client.write(b"\r\n")
                await asyncio.sleep(0.01)
        await server.close()

    # asyncio.run() waits for the task that serves it.
    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive()
