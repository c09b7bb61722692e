"""One target as a federated session sees it: requests, notifications, what it says unasked, and its end."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final, Protocol

from headgate.backend.contract import HttpClient, Response
from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.http_service import MAX_BODY, STREAM, read, target_headers
from headgate.backend.mcp.targets.stdio import StdioServer
from headgate.dialect.mcp.jsonrpc import Kind, Message, NotAMessage, parse
from headgate.dialect.mcp.methods import INITIALIZE
from headgate.dialect.mcp.versions import HEADER, SESSION_HEADER
from headgate.ir.mcp import StdioTarget, StreamableHttpTarget
from headgate_engine.sse.decode import SseDecoder, SseError

logger = logging.getLogger("headgate.mcp")

Fields = list[tuple[str, str]]
INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
LEAST_PAUSE, MOST_PAUSE = 1.0, 30.0
OPENING_ID: Final = b'"gw_open"'


class Refused(TargetFailure):
    """A remote target answered with a status that is no success."""

    def __init__(self, status: int, fields: Fields, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.fields = fields
        self.body = body


class Link(Protocol):
    """`request` yields the messages that belong to a request, its response last; TargetFailure when there is none.
    `pinned`: the session lives in this worker.
    """

    name: str
    capabilities: dict[str, Any] | None

    def request(self, message: Message, fields: Fields) -> AsyncGenerator[bytes, None]: ...
    async def notify(self, message: Message, fields: Fields) -> None: ...
    async def events(self, fields: Fields) -> AsyncIterator[bytes] | None: ...
    async def close(self) -> None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def state(self) -> str | None: ...


def opening_of(message: Message) -> Message:
    """Return the client's `initialize` as the gateway repeats it, under an id of its own."""
    return parse(message.with_id(OPENING_ID))


def note_capabilities(link: Link, text: bytes) -> None:
    """Keep what a target said of itself in its answer to `initialize`."""
    with contextlib.suppress(ValueError):
        result = json.loads(text).get("result")
        found = result.get("capabilities") if isinstance(result, dict) else None
        link.capabilities = found if isinstance(found, dict) else {}


def version_of(text: bytes) -> str | None:
    """Return the revision that a server agreed to in its answer to `initialize`."""
    try:
        result = json.loads(text).get("result")
    except ValueError:
        return None
    found = result.get("protocolVersion") if isinstance(result, dict) else None
    return found if isinstance(found, str) else None


class StdioLink:
    """A child process of this session. One that has ended is started and initialized again, not too often."""

    pinned = True

    def __init__(self, target: StdioTarget) -> None:
        self.name = target.name
        self.capabilities: dict[str, Any] | None = None
        self._target = target
        self._server: StdioServer | None = None
        self._opening: Message | None = None
        self._started = 0.0
        self._pause = LEAST_PAUSE
        self._closed = False

    @property
    def state(self) -> str | None:
        """Nothing outlives the process."""
        return None

    async def _ready(self) -> StdioServer:
        if self._server is not None and not self._server.dead:
            return self._server
        if self._closed:
            raise TargetFailure("the session has ended")
        again = self._server is not None
        now = time.monotonic()
        if again and now - self._started < self._pause:
            raise TargetFailure("the server ended, and is not started again yet")
        if again:
            self._pause = min(self._pause * 2, MOST_PAUSE)
        self._started = now
        server = StdioServer(self._target, lambda: None)
        try:
            await server.start()
        except BaseException:
            await server.stop()
            raise
        self._server = server
        if again and self._opening is not None:
            logger.info("server is started again", extra={"target": self.name})
            async for _ in self._exchange(server, opening_of(self._opening)):
                pass
            await server.send(parse(INITIALIZED))
        return server

    async def _exchange(self, server: StdioServer, message: Message) -> AsyncGenerator[bytes, None]:
        exchange = await server.send(message)
        assert exchange is not None
        try:
            while (text := await exchange.inbox.get()) is not None:
                yield text
        finally:
            if not exchange.answered:
                server.give_up(exchange)

    async def request(self, message: Message, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield what comes of a request."""
        del fields
        if message.method == INITIALIZE:
            self._opening = message
        server = await self._ready()
        last = b""
        async with contextlib.aclosing(self._exchange(server, message)) as texts:
            async for text in texts:
                last = text
                yield text
        if message.method == INITIALIZE:
            note_capabilities(self, last)

    async def notify(self, message: Message, fields: Fields) -> None:
        """Pass a notification or a response on."""
        del fields
        await (await self._ready()).send(message)

    async def events(self, fields: Fields) -> AsyncIterator[bytes] | None:
        """Return what the server says unasked."""
        del fields
        server = await self._ready()

        async def read_all() -> AsyncIterator[bytes]:
            inbox = server.events()
            while (text := await inbox.get()) is not None:
                yield text

        return read_all()

    async def close(self) -> None:
        """End the process."""
        self._closed = True
        if self._server is not None:
            await self._server.stop()


class HttpLink:
    """A session at a remote server. One that the server has forgotten is opened again, unseen."""

    pinned = False

    def __init__(self, target: StreamableHttpTarget, client: HttpClient, session: str | None = None) -> None:
        self.name = target.name
        self.capabilities: dict[str, Any] | None = None
        self._target = target
        self._client = client
        self._session = session
        self._opening: Message | None = None
        self._version: str | None = None

    @property
    def state(self) -> str | None:
        """The server's session id."""
        return self._session

    def _fields(self, fields: Fields, accept: str, message: Message | None) -> Fields:
        own = [(name, value) for name, value in fields if name.lower() != SESSION_HEADER]
        if self._session is not None and (message is None or message.method != INITIALIZE):
            own.append((SESSION_HEADER, self._session))
        if self._version is not None:
            # What this server has agreed to; the client got the lowest revision of all.
            own = [*((name, value) for name, value in own if name.lower() != HEADER), (HEADER, self._version)]
        return target_headers(self._target, own, accept, message)

    async def _call(self, method: str, fields: Fields, message: Message | None, accept: str) -> Response:
        """Return a successful answer; raises Refused for another one, TargetFailure when there is none."""
        body = None if message is None else message.text
        try:
            response = await self._client.request(
                method, self._target.path, self._fields(fields, accept, message), body
            )
        except OSError as error:
            raise TargetFailure(f"upstream call failed: {error}") from error
        if 200 <= response.status < 300:
            return response
        try:
            raise Refused(response.status, list(response.headers), await read(response))
        finally:
            with contextlib.suppress(OSError):
                await response.aclose()

    async def _post(self, message: Message, fields: Fields) -> Response:
        try:
            return await self._call("POST", fields, message, f"application/json, {STREAM}")
        except Refused as error:
            # RFC-less, but MCP's rule: 404 to a session id means "initialize anew".
            if error.status != 404 or self._session is None or self._opening is None or message.method == INITIALIZE:
                raise
        logger.info("session is opened again", extra={"target": self.name})
        self._session = None
        async with contextlib.aclosing(self.request(opening_of(self._opening), fields)) as texts:
            async for _ in texts:
                pass
        await self.notify(parse(INITIALIZED), fields)
        return await self._call("POST", fields, message, f"application/json, {STREAM}")

    async def request(self, message: Message, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield what comes of a request."""
        response = await self._post(message, fields)
        opening = message.method == INITIALIZE
        if opening:
            if message.raw_id != OPENING_ID:
                self._opening = message
            self._session = response.header(SESSION_HEADER)
        try:
            last = b""
            async with contextlib.aclosing(messages_of(response)) as texts:
                async for text in texts:
                    last = text
                    yield text
                    if is_response(text, message):
                        break
            if opening:
                note_capabilities(self, last)
                self._version = version_of(last)
        finally:
            with contextlib.suppress(OSError):
                await response.aclose()

    async def notify(self, message: Message, fields: Fields) -> None:
        """Pass a notification or a response on."""
        response = await self._post(message, fields)
        with contextlib.suppress(OSError):
            await response.aclose()

    async def events(self, fields: Fields) -> AsyncIterator[bytes] | None:
        """Return the server's event stream; None when it has none."""
        try:
            response = await self._call("GET", fields, None, STREAM)
        except Refused as error:
            if error.status == 405:
                return None
            raise
        return messages_of(response)

    async def close(self) -> None:
        """End the server's session."""
        if self._session is not None:
            with contextlib.suppress(TargetFailure, TimeoutError):
                response = await self._call("DELETE", [], None, "application/json")
                await response.aclose()


async def messages_of(response: Response) -> AsyncGenerator[bytes, None]:
    """Yield the messages of an answer, a stream or a single one; raises TargetFailure."""
    kind = (response.header("content-type") or "").split(";")[0].strip().lower()
    try:
        if response.status in (202, 204):
            return
        if kind == "application/json":
            body = await response.read(MAX_BODY)
            if body and body != b"null":
                yield body
            return
        if kind != STREAM:
            raise TargetFailure(f"upstream answer has content type {kind[:80] or 'none'}")
        decoder = SseDecoder(MAX_BODY)
        async for chunk in response:
            for event in decoder.decode(chunk):
                if event.data and event.event == "message":
                    yield event.data
    except (OSError, ValueError, SseError) as error:
        raise TargetFailure(f"upstream answer broke off: {error}") from error


def is_response(text: bytes, message: Message) -> bool:
    """Tell whether a text is the response to a request."""
    try:
        found = parse(text)
    except NotAMessage:
        return False
    return found.kind is Kind.RESPONSE and found.raw_id == message.raw_id


LinkFactory = Callable[[str | None], Link]
