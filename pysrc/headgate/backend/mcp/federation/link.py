"""The link of a federated session to one target: requests, notifications, unsolicited messages, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, Protocol

from headgate.backend.contract import UpstreamResponse
from headgate.backend.mcp.failure import NoAnswer, OwnFailure, TargetFailure, TargetRefusal, call_failure
from headgate.backend.mcp.federation.response_messages import StreamPosition, closed, media_type, messages_of, whole
from headgate.backend.mcp.federation.session_state import SessionStateReplay
from headgate.backend.mcp.federation.target_answer import (
    CANCELLED_CALL,
    NO_ANSWER,
    Fields,
    OnMessage,
    RequestTarget,
    StreamClosed,
    gathered,
    is_response,
    nameless,
    response_to,
)
from headgate.backend.mcp.http_service import JSON, STREAM, target_headers
from headgate.backend.mcp.replay import HEADER as LAST_EVENT_ID
from headgate.backend.mcp.targets.exchanges import TargetExchange
from headgate.backend.mcp.targets.inbox import Inbox
from headgate.backend.mcp.targets.remote import ClientFields, Remote, origin_of
from headgate.dialect.mcp.jsonrpc import RpcMessage, parse
from headgate.dialect.mcp.methods import INITIALIZE
from headgate.dialect.mcp.versions import HEADER, KNOWN, SESSION_HEADER, is_modern
from headgate.ir.mcp import StreamableHttpTarget
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.sessions import TargetSession

logger = logging.getLogger("headgate.mcp")

INITIALIZED: Final = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
LEAST_PAUSE, MOST_PAUSE = 1.0, 30.0
OPENING_ID: Final = b'"gw_open"'
# The client's session and the events it has seen are the gateway's, not the server's.
OWN_FIELDS: Final = frozenset((SESSION_HEADER, LAST_EVENT_ID))
OWN_FIELDS_AND_VERSION: Final = OWN_FIELDS | {HEADER}
# How often a stream that ended is taken up again without anything new in between.
MAX_RESUMES: Final = 5


class Link(Protocol):
    """`request` yields the messages of a request, the response last. Raises TargetFailure without a response.
    `pinned`: the session lives in this worker. `direct`: the session at a server that the engine may call. `meter`
    counts the requests to the target.
    """

    name: str
    capabilities: dict[str, Any] | None
    direct: TargetSession | None
    meter: McpTargetMeter | None

    def reaches(self, method: str | None) -> bool: ...
    def refuses(self, code: object) -> bool: ...
    def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]: ...
    async def ask(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage: ...
    async def notify(self, message: RpcMessage, fields: Fields) -> None: ...
    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None: ...
    async def close(self) -> None: ...
    @property
    def timeout_s(self) -> float | None: ...
    @property
    def pinned(self) -> bool: ...
    @property
    def state(self) -> str | None: ...


def opening_of(message: RpcMessage) -> RpcMessage:
    """Return the `initialize` of the client for repetition, with an id of the gateway."""
    return parse(message.with_id(OPENING_ID))


def note_capabilities(link: Link, text: bytes) -> None:
    """Store the capabilities in the response of a target to `initialize`; its meter gets what it says of itself."""
    if link.meter is not None:
        link.meter.opened(text, None)
    with contextlib.suppress(ValueError):
        result = json.loads(text).get("result")
        found = result.get("capabilities") if isinstance(result, dict) else None
        link.capabilities = found if isinstance(found, dict) else {}


def version_of(text: bytes) -> str | None:
    """Return the revision in the response of a server to `initialize`, None for an unknown one."""
    with contextlib.suppress(ValueError):
        result = json.loads(text).get("result")
        found = result.get("protocolVersion") if isinstance(result, dict) else None
        return found if found in KNOWN else None
    return None


class LinkedServer(Protocol):
    """A running server that sends all its messages on one stream: a process, or a connection."""

    @property
    def dead(self) -> bool: ...
    async def start(self, fields: Fields) -> None: ...
    async def send(self, message: RpcMessage, fields: Fields) -> TargetExchange | None: ...
    def give_up(self, exchange: TargetExchange) -> None: ...
    def events(self) -> Inbox: ...
    async def stop(self) -> None: ...


class ServerLink(RequestTarget):
    """A server of this session, created by `make()`. It is restarted after its end, at a limited rate.

    `remote`: the client of the server, for its time-out on the first message of a request; None for a process.
    """

    pinned = True

    def __init__(
        self,
        name: str,
        make: Callable[[], LinkedServer],
        remote: Remote | None = None,
        meter: McpTargetMeter | None = None,
    ) -> None:
        self.name = name
        self.meter = meter
        self.capabilities: dict[str, Any] | None = None
        self._make = make
        self._remote = remote
        self._server: LinkedServer | None = None
        self._starting = asyncio.Lock()
        self._opening: RpcMessage | None = None
        self._session_state = SessionStateReplay()
        self._restored = False
        self._started = 0.0
        self._pause = LEAST_PAUSE
        self._closed = False

    @property
    def state(self) -> str | None:
        """None: the session ends with the server."""
        return None

    @property
    def timeout_s(self) -> float | None:
        """The time-out in its policies, in seconds."""
        return None if self._remote is None else self._remote.timeout_s

    @property
    def opening(self) -> str | None:
        """The `initialize` of the client. None if it cannot be repeated, because a process ends with its worker."""
        return None if self._remote is None or self._opening is None else self._opening.text.decode()

    def restore(self, opening: str) -> None:
        """Continue the session of another worker: `initialize` is repeated before the next message of the client."""
        self._opening, self._restored = parse(opening.encode()), True

    async def _ready(self, fields: Fields) -> LinkedServer:
        # Who comes while it is started or initialized again waits for the end of that.
        async with self._starting:
            return await self._started_one(fields)

    async def _started_one(self, fields: Fields) -> LinkedServer:
        if self._server is not None and not self._server.dead:
            return self._server
        if self._closed:
            raise OwnFailure("the session has ended")
        again = self._server is not None
        now = time.monotonic()
        if again and now - self._started < self._pause:
            raise TargetFailure("the server ended, and is not started again yet")
        if again:
            self._pause = min(self._pause * 2, MOST_PAUSE)
        self._started = now
        server = self._make()
        try:
            await server.start(fields)
        except BaseException:
            await server.stop()
            raise
        if self._closed:
            await server.stop()
            raise OwnFailure("the session has ended")
        self._server = server
        again, self._restored = again or self._restored, False
        if again and self._opening is not None:
            logger.info("server is restarted", extra={"target": self.name})
            async for _ in self._exchange(server, opening_of(self._opening), fields):
                pass
            await server.send(parse(INITIALIZED), fields)
            for replayed in self._session_state.again():
                with contextlib.suppress(TargetFailure):
                    async for _ in self._exchange(server, replayed, fields):
                        pass
        return server

    async def ask(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage:
        """Return the response to a request."""
        answer = await super().ask(message, fields, on_message)
        self._session_state.note(message, answer)
        return answer

    async def _exchange(self, server: LinkedServer, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        exchange = await server.send(message, fields)
        assert exchange is not None
        try:
            async with asyncio.timeout(None if self._remote is None else self._remote.timeout_s):
                text = await exchange.inbox.get()
            while text is not None:
                yield text
                text = await exchange.inbox.get()
            if exchange.cancelled:
                raise OwnFailure(CANCELLED_CALL)
        except TimeoutError:
            raise TargetFailure("upstream call timeout") from None
        finally:
            if not exchange.answered:
                server.give_up(exchange)

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request."""
        if message.method == INITIALIZE:
            self._opening = message
        server = await self._ready(fields)
        last = b""
        async with contextlib.aclosing(self._exchange(server, message, fields)) as texts:
            async for text in texts:
                last = text
                yield text
        if message.method == INITIALIZE:
            note_capabilities(self, last)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Forward a notification or a response."""
        await (await self._ready(fields)).send(message, fields)

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return the unsolicited messages of the server."""
        server = await self._ready(fields)

        async def read_all() -> AsyncGenerator[bytes, None]:
            inbox = server.events()
            while (text := await inbox.get()) is not None:
                yield text

        return read_all()

    async def close(self) -> None:
        """End the server."""
        self._closed = True
        if self._server is not None:
            await self._server.stop()


class HttpLink(RequestTarget):
    """A session at a remote server. If the server has lost it, the link opens it again without the client noticing."""

    pinned = False

    def __init__(
        self,
        target: StreamableHttpTarget,
        remote: Remote,
        session: str | None = None,
        meter: McpTargetMeter | None = None,
    ) -> None:
        self.name = target.name
        self.meter = meter
        self.capabilities: dict[str, Any] | None = None
        self._target = target
        self._remote = remote
        self._asker = ClientFields()
        self.direct: TargetSession | None = TargetSession(session)
        self._there = self.direct
        self._opening: RpcMessage | None = None
        self._session_state = SessionStateReplay()
        self._position = StreamPosition()

    @property
    def state(self) -> str | None:
        """The server's session id."""
        return self._there.name

    @property
    def timeout_s(self) -> float | None:
        """The time-out in its policies, in seconds."""
        return self._remote.timeout_s

    def _fields(self, fields: Fields, accept: str, message: RpcMessage | None) -> Fields:
        # What this server has agreed to; the client got the lowest revision of all.
        dropped = OWN_FIELDS if self._there.version is None else OWN_FIELDS_AND_VERSION
        headers = target_headers(self._remote.policies, fields, accept, message, dropped)
        if self._there.name is not None and (message is None or message.method != INITIALIZE):
            headers.append((SESSION_HEADER, self._there.name))
        if self._there.version is not None:
            headers.append((HEADER, self._there.version))
        return headers

    async def _call(
        self, method: str, fields: Fields, message: RpcMessage | None, accept: str, after: str = ""
    ) -> UpstreamResponse:
        """Return a successful response. Raises TargetRefusal for another status, TargetFailure without a response."""
        body = None if message is None else message.text
        headers = self._fields(fields, accept, message)
        if after:
            headers.append((LAST_EVENT_ID, after))
        timeout_s, call = self._remote.asked(fields, method, self._target.path, headers, body)
        try:
            if timeout_s is None:
                response = await call
            else:
                async with asyncio.timeout(timeout_s):
                    response = await call
        except TimeoutError:
            raise TargetFailure("upstream call timeout") from None
        except OSError as error:
            raise call_failure(error) from error
        if 200 <= response.status < 300:
            return response
        body = b""
        with contextlib.suppress(TargetFailure):
            # A refusal whose reason breaks off is one all the same.
            body = await whole(response)
        raise TargetRefusal(response.status, list(response.headers), body)

    async def _post(self, message: RpcMessage, fields: Fields) -> UpstreamResponse:
        try:
            return await self._call("POST", fields, message, f"application/json, {STREAM}")
        except TargetRefusal as error:
            # RFC-less, but MCP's rule: 404 to a session id means "initialize anew".
            known = error.status == 404 and self._there.name is not None and message.method != INITIALIZE
            error.forgotten = known and self._opening is None
            if not known or error.forgotten:
                raise
        logger.info("session is reopened", extra={"target": self.name})
        self._there.name, self._position = None, StreamPosition()
        assert self._opening is not None
        async with contextlib.aclosing(self.request(opening_of(self._opening), fields)) as texts:
            async for _ in texts:
                pass
        # Not notify(): a server that forgets its session at once is not asked again and again.
        accepted = await self._call("POST", fields, parse(INITIALIZED), f"application/json, {STREAM}")
        await closed(accepted)
        for replayed in self._session_state.again():
            with contextlib.suppress(TargetRefusal):
                await closed(await self._call("POST", fields, replayed, f"application/json, {STREAM}"))
        return await self._call("POST", fields, message, f"application/json, {STREAM}")

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request."""
        response = await self._post(message, fields)
        opening = message.method == INITIALIZE
        if opening:
            self._asker = ClientFields((), origin_of(fields)).kept()
            if message.raw_id != OPENING_ID:
                self._opening = message
            self._there.name = response.header(SESSION_HEADER)
        last = b""
        async with contextlib.aclosing(self._whole(response, message, fields)) as texts:
            async for text in texts:
                last = text
                yield text
        if opening:
            note_capabilities(self, last)
            self._there.version = version_of(last)

    async def ask(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage:
        """Return the response to a request."""
        answer = await self._answer(message, fields, on_message)
        self._session_state.note(message, answer)
        return answer

    async def _answer(self, message: RpcMessage, fields: Fields, on_message: OnMessage) -> RpcMessage:
        """Return the response to a request. Most responses are a single JSON text and need no stream."""
        if message.method == INITIALIZE:
            return await gathered(self.request(message, fields), message, on_message)
        response = await self._post(message, fields)
        if response.status in (202, 204) or media_type(response) != JSON:
            return await gathered(self._whole(response, message, fields), message, on_message)
        text = nameless(await whole(response), message)
        answer = response_to(text, message)
        if answer is None:
            if text not in (b"", b"null"):
                await on_message(text)
            raise NoAnswer(NO_ANSWER)
        return answer

    async def _whole(
        self, response: UpstreamResponse, message: RpcMessage, fields: Fields
    ) -> AsyncGenerator[bytes, None]:
        """Yield the messages up to the response. A stream that ends early is resumed if its events have ids (transport
        of 2025-11-25, "Resumability").
        """
        position = StreamPosition()
        for _ in range(MAX_RESUMES + 1):
            try:
                async with contextlib.aclosing(messages_of(response, position)) as texts:
                    async for one in texts:
                        text = nameless(one, message)
                        yield text
                        if is_response(text, message):
                            return
            except TargetFailure:
                if not position.event_id or is_modern(message.meta_version):
                    raise
            finally:
                await closed(response)
            # Revision 2026-07-28 has no way to go on.
            if not position.event_id or is_modern(message.meta_version):
                return
            yield StreamClosed(position.pause_s)
            await asyncio.sleep(position.pause_s)
            response = await self._call("GET", fields, None, STREAM, position.event_id)
        await closed(response)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Forward a notification or a response."""
        response = await self._post(message, fields)
        with contextlib.suppress(OSError):
            await response.aclose()

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return the event stream of the server, None if it has none."""
        try:
            response = await self._call("GET", fields, None, STREAM, self._position.event_id)
        except TargetRefusal as error:
            if error.status == 405:
                return None
            raise
        return self._stream_messages(response, fields)

    async def _stream_messages(self, response: UpstreamResponse, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of the event stream. It is opened again after its end if its events have ids."""
        failures = 0
        while True:
            try:
                async with contextlib.aclosing(messages_of(response, self._position)) as texts:
                    async for text in texts:
                        failures = 0
                        yield text
            except TargetFailure:
                if not self._position.event_id:
                    raise
            finally:
                await closed(response)
            if not self._position.event_id or failures >= MAX_RESUMES:
                return
            failures += 1
            await asyncio.sleep(self._position.pause_s)
            response = await self._call("GET", fields, None, STREAM, self._position.event_id)

    async def close(self) -> None:
        """End the server's session."""
        if self._there.name is not None:
            with contextlib.suppress(TargetFailure, TimeoutError):
                response = await self._call("DELETE", self._asker, None, "application/json")
                await response.aclose()


LinkFactory = Callable[[str | None], Link]
