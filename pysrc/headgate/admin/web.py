"""A small HTTP/1.1 server for the operator's ports, on h11."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import h11

from headgate.admin import origins
from headgate.admin.proxy_protocol import skip_header
from headgate.net.sockets import open_socket
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.admin")

HEAD_SECONDS = 2.0
BODY_SECONDS = 30.0
IDLE_SECONDS = 60.0
READ_SIZE = 8192
# Room for an expression of 16384 characters, percent-encoded.
MAX_HEAD = 64 * 1024
# Room for a prompt or the arguments of a tool.
MAX_BODY = 1024 * 1024
# Maximum time for a client to take in a response; then the connection is closed.
WRITE_SECONDS = 60.0
# Maximum time for a client to take in what is still queued when its connection ends; the rest is dropped.
CLOSE_SECONDS = 2.0
# After a time-out expires, sockets get this extra time: a stalled process sees the timer before the data that arrived.
LOOK_SECONDS = 0.1
# Interval between two writes that detect whether a client with a closed sending side still reads.
PROBE_SECONDS = 0.02
NOT_MODIFIED = 304
FOREIGN = b"the admin server does not serve pages of other sites\n"


class AdminRequest(NamedTuple):
    """One request. `query` holds the last value of each parameter, including empty values."""

    method: str
    path: str
    query: dict[str, str]
    host: str
    headers: dict[str, str]
    body: bytes = b""


class AdminResponse(NamedTuple):
    """One response. An empty `content_type` omits the header.

    `work` makes the response if that takes long; it is cancelled when the client disconnects. Then only `headers` of
    this object are used, in addition to those of the result.
    """

    status: int
    body: bytes = b""
    content_type: str = "text/plain"
    headers: tuple[tuple[str, str], ...] = ()
    work: Callable[[], Awaitable[AdminResponse]] | None = None


class AdminStream(NamedTuple):
    """A response whose body is streamed; the connection is closed after it.

    `probe` holds bytes without meaning that are sent to detect a disconnected client. The iterator is always closed.
    """

    pieces: AsyncGenerator[bytes, None]
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()
    probe: bytes = b""


Handler = Callable[[AdminRequest], Awaitable[AdminResponse | AdminStream]]


class AdminRoute(NamedTuple):
    """One endpoint.

    `page`: links on other sites may lead to it. `own`: for the server's own page and for programs only, with a JSON
    body, which no form of another site can send. `tree`: the row also matches all paths below `path`.
    """

    method: str
    path: str
    handler: Handler
    page: bool = False
    own: bool = False
    tree: bool = False

    def fits(self, path: str) -> bool:
        """Return True if the row matches a path."""
        return path == self.path or (self.tree and path.startswith(f"{self.path}/"))


class WebServer:
    """Serves a table of endpoints. `table` makes it, once, for the first request.

    `allowed` returns the origins whose pages may read; if it is given, requests of other foreign pages are refused
    (admin/origins).
    `check_host` refuses host names that DNS rebinding could use; set it only for loopback addresses, since other
    addresses may have any name. `proxy_protocol` accepts a PROXY protocol header before the first request.
    """

    def __init__(
        self,
        table: Callable[[], tuple[AdminRoute, ...]],
        allowed: Callable[[], frozenset[str]] | None = None,
        check_host: bool = False,
        proxy_protocol: bool = False,
    ) -> None:
        self._table = table
        self._proxy_protocol = proxy_protocol
        self._allowed = allowed
        self._check_host = check_host
        self._head_seconds = HEAD_SECONDS
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.StreamWriter] = set()

    async def listen(self, hosts: tuple[str, ...], port: int) -> None:
        """Open the port on every address; raises OSError."""
        for host in hosts:
            sock = open_socket(host, port, shared=False)
            self._servers.append(await asyncio.start_server(self._serve, sock=sock))

    async def serve_at(self, sock: socket.socket) -> None:
        """Serve at a bound socket, which is closed with the server; raises OSError. A Unix socket keeps its path."""
        self._servers.append(await asyncio.start_server(self._serve, sock=sock))

    async def listen_unix(self, path: str) -> None:
        """Open a Unix socket; raises OSError."""
        self._servers.append(await asyncio.start_unix_server(self._serve, path))

    @property
    def addresses(self) -> list[str]:
        """Return the listening addresses, for the log."""
        return [str(sock.getsockname()) for server in self._servers for sock in server.sockets]

    def stop_accepting(self) -> None:
        """Close the listening sockets; open connections continue."""
        for server in self._servers:
            server.close()

    async def close(self) -> None:
        """Stop accepting and close all connections; responses in progress are completed."""
        self.stop_accepting()
        # Readers see the end of input; a response in progress is written first.
        for writer in list(self._connections):
            writer.close()
        for _ in range(20):
            if not self._connections:
                break
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        try:
            first = True
            if self._proxy_protocol and (rest := await skip_header(reader)):
                connection.receive_data(rest)
            while await self._turn(connection, reader, writer, self._head_seconds if first else IDLE_SECONDS):
                first = False
        except h11.RemoteProtocolError as error:
            if connection.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                fields = [("connection", "close"), ("content-length", "0")]
                head = h11.Response(status_code=error.error_status_hint, headers=fields)
                writer.write(connection.send(head) or b"")
                await _take_rest(reader, writer)
        except (TimeoutError, ConnectionError):
            pass
        except Exception:  # task boundary: a failed request must not end the server
            logger.exception("admin request failed")
        finally:
            self._connections.discard(writer)
            await _hang_up(writer)

    async def _turn(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
    ) -> bool:
        """Serve one request; return False if the connection must be closed."""
        async with _within(seconds):
            head = await _read_head(connection, reader)
        if head is None:
            return False
        if connection.they_are_waiting_for_100_continue:
            writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        async with _within(BODY_SECONDS):
            request = _request(head, await _read_body(connection, reader))
        answer = await self._answer(request)
        if isinstance(answer, AdminStream):
            await self._stream(connection, answer, reader, writer)
            return False
        if answer.work is not None:
            made = await _attended(answer.work, connection, reader, writer)
            if made is None:
                return False
            answer = made._replace(headers=(*made.headers, *answer.headers))
        headers = list(answer.headers)
        # A 304 has no body, so a length would be that of the body that is not sent (RFC 9110 section 8.6).
        if answer.status != NOT_MODIFIED:
            headers.insert(0, ("content-length", str(len(answer.body))))
        if answer.content_type:
            headers.append(("content-type", answer.content_type))
        writer.write(connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
        if request.method != "HEAD":
            writer.write(connection.send(h11.Data(data=answer.body)) or b"")
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        async with asyncio.timeout(WRITE_SECONDS):
            await writer.drain()
        if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
            return False
        connection.start_next_cycle()
        return True

    async def _stream(
        self,
        connection: h11.Connection,
        answer: AdminStream,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        headers = [("content-type", answer.content_type), ("connection", "close"), *answer.headers]
        writer.write(connection.send(h11.Response(status_code=200, headers=headers)) or b"")
        gone = spawn("admin client leaves", _gone(reader, writer, connection, answer.probe))
        body = spawn("admin stream", _send_pieces(connection, answer.pieces, writer))
        try:
            await asyncio.wait((gone, body), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, body):
                task.cancel()
            await asyncio.gather(gone, body, return_exceptions=True)

    async def _call(self, row: AdminRoute, request: AdminRequest) -> AdminResponse | AdminStream:
        try:
            return await row.handler(request)
        except Exception as error:  # task boundary: the operator sees the failure, the server continues
            logger.exception("admin endpoint failed", extra={"path": row.path})
            return AdminResponse(500, f"{type(error).__name__}\n".encode())

    def fitting(self, path: str) -> list[AdminRoute]:
        """Return the rows for a path; an exact match takes precedence over trees."""
        return [row for row in self._rows if row.path == path] or [row for row in self._rows if row.fits(path)]

    @cached_property
    def _rows(self) -> tuple[AdminRoute, ...]:
        return self._table()

    async def _answer(self, request: AdminRequest) -> AdminResponse | AdminStream:
        rows = self.fitting(request.path)
        if self._check_host and not origins.is_local_name(request.host):
            return AdminResponse(421, b"the admin server answers to localhost and addresses only\n")
        if self._allowed is None:
            return await self._dispatch(rows, request)
        if any(row.own for row in rows):
            refused = _refused(rows, request)
            return await self._dispatch(rows, request) if refused is None else refused
        allowed = self._allowed()
        preflight = origins.preflight(request.method, request.headers, allowed)
        if preflight is not None:
            return AdminResponse(200, content_type="", headers=preflight)
        if origins.is_foreign(request.headers, request.host, any(row.page for row in rows), allowed):
            return AdminResponse(403, FOREIGN)
        answer = await self._dispatch(rows, request)
        return answer._replace(headers=(*answer.headers, *origins.cors(request.headers, allowed)))

    async def _dispatch(self, rows: list[AdminRoute], request: AdminRequest) -> AdminResponse | AdminStream:
        if not rows:
            return AdminResponse(404, content_type="")
        # HEAD must not start a trace or a profile.
        head = request.method == "HEAD" and not request.path.startswith("/debug/")
        for row in rows:
            if row.method == ("GET" if head else request.method):
                return await self._call(row, request)
        return AdminResponse(405, content_type="", headers=(("allow", ", ".join(row.method for row in rows)),))


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection. A client that does not read what is queued for it must not keep the server from ending."""
    closed = False
    writer.close()
    try:
        with contextlib.suppress(OSError):  # TimeoutError is an OSError too
            async with asyncio.timeout(CLOSE_SECONDS):
                await writer.wait_closed()
                closed = True
    finally:
        if not closed:  # asyncio fails to abort what was closed after its queue had been sent
            writer.transport.abort()


def _refused(rows: list[AdminRoute], request: AdminRequest) -> AdminResponse | None:
    """Return the refusal of a request for an `own` row, None if it is allowed."""
    if origins.is_foreign(request.headers, request.host, to_page=False, allowed=frozenset()):
        return AdminResponse(403, FOREIGN)
    return refused_kind(rows, request)


def refused_kind(rows: list[AdminRoute], request: AdminRequest) -> AdminResponse | None:
    """Return the refusal of a body that another site's form could send to an `own` row, None if it is allowed."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if request.method in ("POST", "PUT") and any(row.own for row in rows) and kind != "application/json":
        return AdminResponse(415, b"the body must be application/json\n")
    return None


async def _send_pieces(
    connection: h11.Connection, pieces: AsyncGenerator[bytes, None], writer: asyncio.StreamWriter
) -> None:
    async with contextlib.aclosing(pieces):
        with contextlib.suppress(OSError):  # the client has disconnected; TimeoutError is an OSError
            async for piece in pieces:
                writer.write(connection.send(h11.Data(data=piece)) or b"")
                async with asyncio.timeout(WRITE_SECONDS):
                    await writer.drain()
            writer.write(connection.send(h11.EndOfMessage()) or b"")
            await writer.drain()


async def _gone(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: h11.Connection, probe: bytes
) -> None:
    """Return when the client has disconnected. A client that closed only its sending side may still read."""
    with contextlib.suppress(OSError):
        while await reader.read(READ_SIZE):
            pass  # no data is expected before the response ends
        while probe and _open(connection, writer):
            # The first write after the disconnection provokes a reset, and the second one meets it.
            writer.write(connection.send(h11.Data(data=probe)) or b"")
            await asyncio.sleep(PROBE_SECONDS)
            await writer.drain()
            if _open(connection, writer):
                writer.write(connection.send(h11.Data(data=probe)) or b"")
                await writer.drain()
            await asyncio.sleep(1.0)


def _open(connection: h11.Connection, writer: asyncio.StreamWriter) -> bool:
    """Return True if the body can be continued; it can end at any time."""
    return connection.our_state is h11.SEND_BODY and not writer.transport.is_closing()


@contextlib.asynccontextmanager
async def _within(seconds: float) -> AsyncGenerator[None, None]:
    """Cancel the block after `seconds`, once data that already arrived had time to be read; raises TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(None) as limit:
        over = loop.call_later(seconds, lambda: limit.reschedule(loop.time() + LOOK_SECONDS))
        try:
            yield
        finally:
            over.cancel()


async def _attended(
    work: Callable[[], Awaitable[AdminResponse]],
    connection: h11.Connection,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> AdminResponse | None:
    """Return the response; None if the client disconnected first, which cancels the work."""

    async def made() -> AdminResponse:
        try:
            return await work()
        except Exception as error:  # task boundary: the operator sees the failure
            logger.exception("admin work failed")
            return AdminResponse(500, f"{type(error).__name__}\n".encode())

    answer = spawn("admin work", made())
    gone = spawn("admin client leaves", _left(connection, reader, writer))
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        answer.cancel()  # no effect if it is done
        gone.cancel()
        await asyncio.gather(answer, gone, return_exceptions=True)
    return None if answer.cancelled() else answer.result()


async def _left(connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Return when a client that waits for a response has disconnected.

    A client that closed only its sending side may still read. Interim responses, which HTTP/1.1 clients ignore (RFC
    9110 section 15.2), detect whether it does.
    """
    with contextlib.suppress(OSError):
        held = 0
        while data := await reader.read(READ_SIZE):
            connection.receive_data(data)  # the next request
            held += len(data)
            if held > MAX_HEAD:
                await asyncio.Event().wait()
        if connection.their_http_version == b"1.0":
            await asyncio.Event().wait()
        while not writer.transport.is_closing():
            writer.write(connection.send(h11.InformationalResponse(status_code=102, headers=[])) or b"")
            await writer.drain()
            await asyncio.sleep(1.0)


async def _take_rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read and discard the rest of a refused request, up to a limit: closing early would reset the response."""
    with contextlib.suppress(OSError):  # TimeoutError is an OSError too
        writer.write_eof()
        async with asyncio.timeout(HEAD_SECONDS):
            for _ in range(8 * MAX_BODY // READ_SIZE):
                if not await reader.read(READ_SIZE):
                    return


async def _event(connection: h11.Connection, reader: asyncio.StreamReader) -> Any:
    """Return the next h11 event of the client."""
    while (event := connection.next_event()) is h11.NEED_DATA:
        connection.receive_data(await reader.read(READ_SIZE))
    return event


async def _read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """Read the head of a request; None if the client has closed. Raises h11.RemoteProtocolError."""
    event = await _event(connection, reader)
    return event if isinstance(event, h11.Request) else None


async def _read_body(connection: h11.Connection, reader: asyncio.StreamReader) -> bytes:
    """Return the body of a request. Raises h11.RemoteProtocolError, also if the body is too large."""
    body = bytearray()
    while isinstance(event := await _event(connection, reader), h11.Data):
        body += event.data
        if len(body) > MAX_BODY:
            raise h11.RemoteProtocolError("body too large", error_status_hint=413)
    return bytes(body)


def _request(head: h11.Request, body: bytes) -> AdminRequest:
    """Return the request; raises h11.RemoteProtocolError for a malformed target."""
    try:
        url = urlsplit(head.target.decode("ascii", "replace"))
    except ValueError:
        raise h11.RemoteProtocolError("bad target", error_status_hint=400) from None
    query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
    return AdminRequest(head.method.decode("ascii"), url.path, query, headers.get("host", ""), headers, body)
