"""A small HTTP/1.1 server on h11 for the samples: it reads whole requests and sends complete or streamed answers."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import h11

logger = logging.getLogger("sample")

READ_SIZE = 65536
# Responses that have no body (RFC 9110 sections 15.3.5 and 15.4.5).
BODILESS = (204, 304)
MAX_BODY = 64 * 1024 * 1024
PR_SET_PDEATHSIG = 1


@dataclass
class SampleRequest:
    """One request."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def path(self) -> str:
        """Return the target without its query."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Return the first value of the header `name` (in lower case), None if it is missing."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass
class SampleResponse:
    """One answer: `body`, or `stream`, whose chunks are sent as they arrive."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None


Handler = Callable[[SampleRequest], Awaitable[SampleResponse]]


class SampleServer:
    """Serves one handler."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def start(self, host: str, port: int) -> asyncio.Server:
        """Start listening; port 0 picks a free port."""
        return await asyncio.start_server(self._serve, host, port)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=READ_SIZE)
        try:
            while await self._turn(connection, reader, writer):
                connection.start_next_cycle()
        except (ConnectionError, h11.ProtocolError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _turn(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        request = await _read(connection, reader)
        if request is None:
            return False
        try:
            answer = await self._handler(request)
        except Exception:  # connection boundary: one bad request must not end the connection
            logger.exception("handler failed")
            answer = SampleResponse(status=500, body=b'{"error":"internal error"}')
        bodiless = answer.status in BODILESS
        headers = [] if bodiless else [("content-type", answer.content_type)]
        headers += answer.headers
        if answer.stream is None and not bodiless:
            headers.append(("content-length", str(len(answer.body))))
        writer.write(connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
        if request.method != "HEAD" and not bodiless:
            if answer.stream is None:
                writer.write(connection.send(h11.Data(data=answer.body)) or b"")
            else:
                async for piece in answer.stream:
                    writer.write(connection.send(h11.Data(data=piece)) or b"")
                    await writer.drain()
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE


async def _read(connection: h11.Connection, reader: asyncio.StreamReader) -> SampleRequest | None:
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(READ_SIZE))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                return None
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = [(name.decode(), value.decode("latin-1")) for name, value in head.headers]
            return SampleRequest(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))
        else:
            return None


def end_with_parent() -> None:
    """Have the kernel end this process when its parent ends."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:     # the parent ended before prctl(); in containers, PID 1 may be the parent
        raise SystemExit(0)


async def run(servers: list[tuple[str, Handler, str, int]]) -> None:
    """Serve each (name, host, port) with its handler until SIGTERM or SIGINT; prints `name port` for each server."""
    stop = asyncio.Event()
    for sig in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    opened = []
    for name, handler, host, port in servers:
        server = await SampleServer(handler).start(host, port)
        opened.append(server)
        print(f"{name} {server.sockets[0].getsockname()[1]}", flush=True)
    await stop.wait()
    for server in opened:
        server.close()
