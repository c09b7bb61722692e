"""A server with HTTP+SSE (revision 2024-11-05): one event stream carries all its messages, and messages to it are
posted.

The first event of the stream names the URL for posts. It must have the origin of the stream, since otherwise a server
could redirect its clients' credentials to another host.
Source: https://modelcontextprotocol.io/specification/2024-11-05/basic/transports
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin, urlsplit

from headgate.backend.contract import UpstreamResponse
from headgate.backend.mcp.failure import TargetFailure, TargetRefusal, call_failure
from headgate.backend.mcp.http_service import MAX_BODY, STREAM, read, target_headers
from headgate.backend.mcp.targets.exchanges import Exchanges, TargetExchange
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.backend.mcp.targets.remote import ClientFields, Remote, origin_of
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate.ir.mcp import SseTarget
from headgate.net.tasks import spawn
from headgate_engine.sse.decode import SseDecoder, SseError

logger = logging.getLogger("headgate.mcp.sse")

# Time until the event that names the endpoint, unless the target's time-out is shorter.
OPEN_SECONDS: Final = 30.0
Fields = list[tuple[str, str]]


def endpoint_path(base: str, announced: str) -> str:
    """Return path and query of the announced endpoint, a URL reference relative to `base` (RFC 3986 section 5).

    Raises ValueError if it has another origin or is not an http URL.
    """
    if any(char <= " " or char >= "\x7f" or char == "\\" for char in announced):
        raise ValueError("not a URL")
    found, own = urlsplit(urljoin(base, announced)), urlsplit(base)
    if (found.scheme, found.hostname, _port(found.scheme, found.port)) != (
        own.scheme, own.hostname, _port(own.scheme, own.port),
    ) or found.username is not None:  # fmt: skip
        raise ValueError("the endpoint has another origin")
    return (found.path or "/") + (f"?{found.query}" if found.query else "")


def _port(scheme: str, port: int | None) -> int:
    return port if port is not None else 443 if scheme == "https" else 80


class SseServer:
    """One connection to such a server, which is one session there. `on_exit` is called once when it has ended."""

    def __init__(self, target: SseTarget, remote: Remote, on_exit: Callable[[], None]) -> None:
        self._target = target
        self._remote = remote
        self._on_exit = on_exit
        self._asker = ClientFields()
        self._exchanges = Exchanges(target.name, self._write)
        self._endpoint: str | None = None
        self._response: UpstreamResponse | None = None
        self._reading: asyncio.Task[None] | None = None
        self._dead = False

    @property
    def dead(self) -> bool:
        """True if the server accepts no more messages."""
        return self._dead

    # -- opening -------------------------------------------------------------------------------------------------------
    async def start(self, fields: Fields) -> None:
        """Open the stream on behalf of a client and wait for the endpoint; raises TargetFailure."""
        self._asker = ClientFields((), origin_of(fields)).kept()
        opened = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._remote.timeout_s or OPEN_SECONDS):
                self._response = await self._call("GET", fields, None)
                self._reading = spawn(f"mcp sse {self._target.name}", self._read(self._response, opened))
                self._endpoint = await opened
        except TimeoutError:
            await self.stop()
            raise TargetFailure("the event stream was not opened in time") from None
        except BaseException:
            await self.stop()
            raise

    async def _call(self, method: str, fields: Fields, message: RpcMessage | None) -> UpstreamResponse:
        accept = STREAM if message is None else f"application/json, {STREAM}"
        own = ClientFields([one for one in fields if one[0].lower() != SESSION_HEADER], origin_of(fields))
        headers = target_headers(self._remote.policies, own, accept, message)
        path = self._target.path if message is None else self._endpoint or ""
        body = None if message is None else message.text
        try:
            response = await self._remote.request(method, path, headers, body, own.origin)
        except OSError as error:
            raise call_failure(error) from error
        try:
            if not 200 <= response.status < 300:
                raise TargetRefusal(response.status, list(response.headers), await read(response))
            kind = (response.header("content-type") or "").split(";")[0].strip().lower()
            if message is None and kind != STREAM:
                raise TargetFailure(f"upstream answer has content type {kind[:80] or 'none'}")
        except BaseException:
            await _close(response)
            raise
        return response

    async def _read(self, response: UpstreamResponse, opened: asyncio.Future[str]) -> None:
        """Pass the stream's messages to their requests until it ends."""
        decoder = SseDecoder(MAX_BODY)
        try:
            async for chunk in response:
                for event in decoder.decode(chunk):
                    if event.event == "endpoint" and not opened.done():
                        opened.set_result(self._resolved(event.data))
                    elif event.event == "message" and event.data:
                        self._exchanges.receive(event.data)
            reason = "the event stream ended"
        except (OSError, ValueError, SseError) as error:
            reason = f"the event stream broke off: {error}"
        finally:
            self._end()
        if not opened.done():
            opened.set_exception(TargetFailure(reason))
        logger.info("connection ended", extra={"target": self._target.name, "error": reason})

    def _resolved(self, announced: bytes) -> str:
        scheme = "http" if self._target.endpoint.tls is None else "https"
        base = f"{scheme}://{self._remote.authority}{self._target.path}"
        return endpoint_path(base, announced.decode("utf-8", "replace").strip())

    # -- messages ------------------------------------------------------------------------------------------------------
    async def send(self, message: RpcMessage, fields: Fields) -> TargetExchange | None:
        """Send a message; return the exchange of a request, None for other messages. Raises TargetFailure."""

        async def write(text: bytes) -> None:
            await self._post(parse(text), fields)

        if self._dead:
            raise TargetFailure("the server is not connected")
        return await self._exchanges.send(message, write)

    async def _write(self, text: bytes) -> None:
        """Post a message of the gateway on behalf of the connection's client."""
        await self._post(parse(text), self._asker)

    async def _post(self, message: RpcMessage, fields: Fields) -> None:
        try:
            async with asyncio.timeout(self._remote.timeout_s):
                await _close(await self._call("POST", fields, message))
        except TimeoutError:
            raise TargetFailure("upstream call timeout") from None

    def give_up(self, exchange: TargetExchange) -> None:
        """Cancel a request whose client has disconnected; the notification is sent in the background."""
        self._exchanges.give_up(exchange)

    def events(self) -> Inbox:
        """Return a new inbox for unsolicited messages, with those not read yet; the previous inbox ends."""
        return self._exchanges.events()

    # -- closing -------------------------------------------------------------------------------------------------------
    def _end(self) -> None:
        if not self._dead:
            self._dead = True
            self._exchanges.end(stopped=self._reading is None)
            self._on_exit()

    async def stop(self) -> None:
        """Close the connection, which ends the session at the server."""
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            await asyncio.wait([reading])
        if self._response is not None:
            await _close(self._response)
        self._end()


async def _close(response: UpstreamResponse) -> None:
    with contextlib.suppress(OSError):
        await response.aclose()
