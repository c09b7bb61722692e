"""A small HTTP/1.1 server for the operator's ports, on h11: keep-alive, no streaming."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

import h11

from headgate.net.sockets import open_socket

logger = logging.getLogger("headgate.admin")

HEAD_SECONDS = 2.0
IDLE_SECONDS = 60.0
READ_SIZE = 8192
MAX_BODY = 64 * 1024


class Request(NamedTuple):
    """One request. `query` holds the last value of each parameter; an empty one counts."""

    method: str
    path: str
    query: dict[str, str]
    host: str
    headers: dict[str, str]


class Answer(NamedTuple):
    """One answer. `content_type` empty: no such header."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain"
    headers: tuple[tuple[str, str], ...] = ()


Handler = Callable[[Request], Awaitable[Answer]]


class Row(NamedTuple):
    """One endpoint."""

    method: str
    path: str
    handler: Handler


class WebServer:
    """Serves a table of endpoints. `check_host` refuses names that DNS rebinding could point at this port."""

    def __init__(self, rows: tuple[Row, ...], check_host: bool = False) -> None:
        self._rows = rows
        self._check_host = check_host
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.StreamWriter] = set()

    async def listen(self, hosts: tuple[str, ...], port: int) -> None:
        """Open the port on every address; raises OSError."""
        for host in hosts:
            sock = open_socket(host, port, shared=False)
            self._servers.append(await asyncio.start_server(self._serve, sock=sock))

    async def listen_unix(self, path: str) -> None:
        """Open a Unix socket; raises OSError."""
        self._servers.append(await asyncio.start_unix_server(self._serve, path))

    @property
    def addresses(self) -> list[str]:
        """What is listened on, for the log."""
        return [str(sock.getsockname()) for server in self._servers for sock in server.sockets]

    async def close(self) -> None:
        """Stop accepting; answers under way are finished."""
        for server in self._servers:
            server.close()
        # Readers see the end of their input; an answer under way is written first.
        for writer in list(self._connections):
            writer.close()
        for _ in range(20):
            if not self._connections:
                break
            await asyncio.sleep(0.01)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=READ_SIZE)
        try:
            first = True
            while await self._turn(connection, reader, writer, HEAD_SECONDS if first else IDLE_SECONDS):
                first = False
        except (TimeoutError, ConnectionError, h11.RemoteProtocolError):
            pass
        except Exception:  # task boundary: one operator's request must not end the server
            logger.exception("admin request failed")
        finally:
            self._connections.discard(writer)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _turn(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
    ) -> bool:
        """One request and its answer; False when the connection is to be closed."""
        async with asyncio.timeout(seconds):
            request = await _read_request(connection, reader)
        if request is None:
            return False
        answer = await self._answer(request)
        headers = [("content-length", str(len(answer.body))), *answer.headers]
        if answer.content_type:
            headers.append(("content-type", answer.content_type))
        writer.write(connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
        if request.method != "HEAD":
            writer.write(connection.send(h11.Data(data=answer.body)) or b"")
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
            return False
        connection.start_next_cycle()
        return True

    async def _call(self, row: Row, request: Request) -> Answer:
        try:
            return await row.handler(request)
        except Exception as error:  # task boundary: the operator sees that it failed, the server goes on
            logger.exception("admin endpoint failed", extra={"path": row.path})
            return Answer(500, f"{type(error).__name__}\n".encode())

    async def _answer(self, request: Request) -> Answer:
        if self._check_host and not is_local_name(request.host):
            return Answer(421, b"the admin server answers to localhost and addresses only\n")
        rows = [row for row in self._rows if row.path == request.path]
        if not rows:
            return Answer(404, content_type="")
        for row in rows:
            if row.method in (request.method, "GET" if request.method == "HEAD" else ""):
                return await self._call(row, request)
        return Answer(405, content_type="", headers=(("allow", ", ".join(row.method for row in rows)),))


async def _read_request(connection: h11.Connection, reader: asyncio.StreamReader) -> Request | None:
    """Read a request with its body, which no endpoint needs; None when the client is done."""
    head: h11.Request | None = None
    size = 0
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if size > MAX_BODY:
                return None
        elif isinstance(event, h11.EndOfMessage):
            break
        else:
            return None
    if head is None:
        return None
    url = urlsplit(head.target.decode("ascii", "replace"))
    query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
    headers = {name.decode("ascii"): value.decode("latin-1") for name, value in head.headers}
    return Request(head.method.decode("ascii"), url.path, query, headers.get("host", ""), headers)


def is_local_name(host: str) -> bool:
    """Tell whether a Host header is `localhost` or an address: what no foreign DNS name can make a browser send."""
    name = host.rsplit(":", 1)[0] if not host.endswith("]") and host.count(":") != 0 else host
    name = name.strip("[]")
    if name.lower() == "localhost" or not host:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
