"""StreamableHTTP in front of a StreamableHTTP server: messages and streams pass as they are.

The session is the server's own. Its id is sealed on its way to the client, with who it is for, so that any worker can
serve any request of it, and nobody else's. Where the server gives none, clients have one all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from enum import Enum

from headgate.backend.contract import BackendCall, ResponseStream, UpstreamResponse
from headgate.backend.mcp.failure import (
    DIRECT_REQUEST,
    McpFailure,
    SharedStoreAway,
    TargetFailure,
    TargetRefusal,
    session_not_found,
)
from headgate.backend.mcp.front import STREAM_HEADERS, needs_session
from headgate.backend.mcp.relay import relayed
from headgate.backend.mcp.request_telemetry import logged_session_id
from headgate.backend.mcp.session import McpSession, Sessions, owner_of
from headgate.backend.mcp.states import SessionStates
from headgate.backend.mcp.target_calls import CountedCall
from headgate.backend.mcp.targets.remote import ClientFields, Remote, origin_of, taken_over
from headgate.dialect.mcp import mirrored, versions
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, NotAMessage, RpcKind, RpcMessage, agree, error_message, parse
from headgate.dialect.mcp.methods import DISCOVER, INITIALIZE
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate.ir.mcp import StreamableHttpTarget
from headgate.ir.policies import BackendPolicies, HeaderModifier
from headgate.ir.policy.backend_auth import Passthrough
from headgate_engine.context.field_names import MESSAGE_FRAMING
from headgate_engine.context.request import RequestContext
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.sessions import TargetSession
from headgate_engine.sse.decode import Event, SseDecoder, SseError
from headgate_engine.sse.encode import encode_event

MAX_BODY = 16 * 1024 * 1024

# Never passed to a target: framing, what describes the original body, and the client's credentials.
NOT_FORWARDED = frozenset(
    (
        "accept",
        "accept-encoding",
        "authorization",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "mcp-method",
        "mcp-name",
        "proxy-authorization",
        "x-api-key",
    )
)
# Not passed to the client: the body is framed anew.
NOT_RETURNED = MESSAGE_FRAMING | {SESSION_HEADER}
# What workers tell one another.
RELAY = "x-gw-relay-"
SESSION_FIELD = frozenset((SESSION_HEADER,))
STREAM, JSON = "text/event-stream", "application/json"
# With what an event begins that has a name, and (a byte order mark) the one that nothing can stand in front of.
NAMES = (b"event", b"\xef\xbb\xbf")
# What answers have and hardly anything else, and how many events that have it are looked at when a stream ends.
ANSWER_MARKS = (b'"result"', b'"error"')
MAYBE_ANSWERS = 4


class GatewayValue(str):
    """A field's value that the gateway itself gives: targets get it also under names that clients cannot use."""

    __slots__ = ()


class AnswerShape(Enum):
    """How an answer is passed on: event by event, as one event, or as it is."""

    STREAM = "stream"
    EVENT = "event"
    PLAIN = "plain"


class RemoteSession(TargetSession):
    """A session at the server: what it is called there, None where it has none."""

    dead = False

    async def stop(self) -> None:
        """Do nothing: the client's own request has ended it at the server."""

    async def release(self) -> None:
        """Do nothing: nothing is held."""


class HttpService:
    """One remote target, reached as `remote` says. `states` makes and reads the ids of its `sessions`;
    `tell_ended` has other workers forget one; `meter` counts the requests.
    """

    def __init__(
        self,
        target: StreamableHttpTarget,
        remote: Remote,
        sessions: Sessions,
        states: SessionStates,
        tell_ended: Callable[[str], Awaitable[None]],
        meter: McpTargetMeter | None = None,
    ) -> None:
        self._target = target
        self._meter = meter
        self.remote = remote
        self.sessions = sessions
        self._states = states
        self._tell_ended = tell_ended

    async def post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None:
        """Forward a message. Raises McpFailure."""
        if session_id is None and needs_session(message):
            raise McpFailure(400, "a session id is required; initialize first")
        session = None if session_id is None else await self._session(call, session_id)
        headers = self._headers(call, f"{JSON}, {STREAM}", session, message)
        with self._use(session):
            await self._forward(call, headers, session, message)

    async def open(self, call: BackendCall, message: RpcMessage, refused: Callable[[int, bytes], bool]) -> bool:
        """Forward `initialize`; False, and no answer, when `refused(status, body)` says that the server has no
        sessions.
        """
        headers = self._headers(call, f"{JSON}, {STREAM}", None, message)
        return await self._forward(call, headers, None, message, refused)

    async def post_modern(self, call: BackendCall, message: RpcMessage, refused: Callable[[int, bytes], bool]) -> bool:
        """Forward a message of revision 2026-07-28; False, and no answer, when `refused(status, body)` says that the
        server does not know that revision.
        """
        headers = self._headers(call, f"{JSON}, {STREAM}", None, message)
        return await self._forward(call, headers, None, message, refused)

    async def get(self, call: BackendCall, session_id: str | None) -> None:
        """Forward the event stream; a server without one says 405 itself. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        session = await self._session(call, session_id)
        with self._use(session):
            await self._forward(call, self._headers(call, STREAM, session), session, None)

    async def delete(self, call: BackendCall, session_id: str | None) -> None:
        """Forward the end of the session. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        if relayed(call):
            await self.sessions.end_here(session_id)
            call.reply(200)
            return
        try:
            session = await self._session(call, session_id)
        except SharedStoreAway:
            raise
        except McpFailure:
            # It is gone, as the client wants it, or never was. Other replicas may not have been told yet.
            if self.sessions.has_tombstone(session_id):
                await self.sessions.tell_replicas(session_id)
            call.reply(200)
            return
        if session.server.name is None:
            await self._end(session_id)
            call.reply(200)
        else:
            await self._forward(call, self._headers(call, JSON, session), session, None, ends=session_id)

    async def _end(self, session_id: str) -> None:
        """End a session at every worker and replica. When the client gets the answer, none of them continues it."""
        await self.sessions.remove(session_id)
        self.sessions.tombstone(session_id)
        await self._tell_ended(session_id)
        await self.sessions.tell_replicas(session_id)

    # -- sessions ------------------------------------------------------------------------------------------------------
    async def _session(self, call: BackendCall, session_id: str) -> McpSession:
        """Return the session of an id. Raises 404 for an id that is none, or somebody else's; SharedStoreAway."""
        owner = owner_of(call.context)
        session = self.sessions.find(session_id, owner)
        if session is not None:
            return session
        states = self._states.open(session_id, owner, self.sessions.oldest())
        # Of one with more targets the client knows other names for what there is.
        if states is None or set(states) != {self._target.name} or await self.sessions.was_ended(session_id):
            raise session_not_found()
        # Another request of the session may have brought it back meanwhile.
        found = self.sessions.find(session_id, owner)
        return found or self.sessions.adopt(session_id, RemoteSession(states[self._target.name]), owner)

    def _use(self, session: McpSession | None) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if session is None else self.sessions.in_use(session)

    def _begun(
        self, call: BackendCall, session: McpSession | None, response: UpstreamResponse, opened: bool
    ) -> list[tuple[str, str]]:
        """Return the field with the session of an answer, where the client can have one and the answer names one or
        is to an `initialize` (`opened`).
        """
        name = response.header(SESSION_HEADER)
        if (name is None and not opened) or versions.is_modern(call.headers.get(versions.HEADER)):
            return []
        if session is None or session.server.name != name:
            owner = owner_of(call.context)
            session_id = self._states.seal([(self._target.name, name)], owner, int(time.time()))
            session = self.sessions.adopt(session_id, RemoteSession(name), owner)
            call.add_log_field("mcp.session.id", logged_session_id(session.id))
        return [(SESSION_HEADER, session.id)]

    def _headers(
        self, call: BackendCall, accept: str, session: McpSession | None, message: RpcMessage | None = None
    ) -> list[tuple[str, str]]:
        fields = ClientFields(call.headers.items(), call.context)
        headers = target_headers(self.remote.policies, fields, accept, message, SESSION_FIELD)
        if session is not None and session.server.name is not None:
            headers.append((SESSION_HEADER, session.server.name))
        return headers

    # -- exchange ------------------------------------------------------------------------------------------------------
    async def _forward(
        self,
        call: BackendCall,
        headers: list[tuple[str, str]],
        session: McpSession | None,
        message: RpcMessage | None,
        refused: Callable[[int, bytes], bool] | None = None,
        ends: str | None = None,
    ) -> bool:
        """Call the server and give the client its answer. The target's time-out does not cover a stream's body.

        `ends`: the id of the session that is over when the server has answered.
        """
        response: UpstreamResponse | None = None
        body = b""
        counted = CountedCall(self._meter, message, call)
        timeout_s = self.remote.timeout_s if call.begun is None else call.begun.remaining_s
        try:
            async with contextlib.nullcontext() if timeout_s is None else asyncio.timeout(timeout_s):
                response = await self._request(call, headers, None if message is None else message.text)
                shape = shape_of(call.method, message, response)
                if shape is not AnswerShape.STREAM:
                    body = await read(response)
            if refused is not None and refused(response.status, body):
                return False
            if not 200 <= response.status < 300:
                counted.refused(response.status)
            elif shape is not AnswerShape.STREAM:
                self._answered(counted, message, body)
            if ends is not None:
                await self._end(ends)
            own = self._begun(call, session, response, opened(message, response, body))
            if shape is AnswerShape.STREAM:
                await self._stream(call, response, own, message, counted)
            elif shape is AnswerShape.EVENT and body:
                call.reply(response.status, self._event_fields(own), encode_event(body, "message"))
            else:
                returned = [(name, value) for name, value in response.headers if name.lower() not in NOT_RETURNED]
                returned = edited([*returned, *own], self.remote.policies.response_headers)
                call.reply(response.status, returned, body)
            return True
        except TargetRefusal as error:
            counted.ended(error)
            call.reply(error.status, error.fields, error.body, reason="MCP")
            return True
        except McpFailure as failure:
            if getattr(failure.__cause__, "refused", False):
                counted.dropped()  # the gateway's own limit
            counted.failed(failure.message)
            raise
        except TimeoutError:
            counted.failed("upstream call timeout")
            raise McpFailure(504, "upstream call timeout", INTERNAL_ERROR) from None
        finally:
            if response is not None:
                with contextlib.suppress(OSError):
                    await response.aclose()

    async def _request(self, call: BackendCall, headers: list[tuple[str, str]], body: bytes | None) -> UpstreamResponse:
        begun, call.begun = call.begun, None
        try:
            if begun is not None:
                return taken_over(begun)
            return await self.remote.request(call.method, self._target.path, headers, body, call.context)
        except TimeoutError:
            raise
        except OSError as error:
            raise McpFailure(503, f"upstream call failed: {error}", INTERNAL_ERROR) from error

    def _answered(self, counted: CountedCall, message: RpcMessage | None, text: bytes) -> None:
        """Count the response of the server, which tells something of itself in that to `initialize`."""
        counted.answered(text)
        if self._meter is not None and message is not None and message.method in (INITIALIZE, DISCOVER):
            self._meter.opened(text, versions.MODERN if message.method == DISCOVER else None)

    def _event_fields(self, own: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return edited([*STREAM_HEADERS, *own], self.remote.policies.response_headers)

    async def _stream(
        self,
        call: BackendCall,
        response: UpstreamResponse,
        own: list[tuple[str, str]],
        message: RpcMessage | None,
        counted: CountedCall,
    ) -> None:
        """Pass events on as they come, each one whole: a stream that breaks off leaves no half of one."""
        stream: ResponseStream = call.stream(response.status, self._event_fields(own))
        decoder = SseDecoder(MAX_BODY)
        last: deque[bytes] = deque(maxlen=MAYBE_ANSWERS)
        modern = versions.is_modern(call.headers.get(versions.HEADER))
        try:
            async with contextlib.aclosing(blocks(response, decoder, modern)) as pieces:
                async for raw, data in pieces:
                    last += data
                    await stream.send(raw)
            reason, count = "upstream stream ended without an answer", counted.unanswered
        except TargetFailure as error:
            call.add_log_field("mcp.error.message", str(error))
            count = counted.failed
            reason = DIRECT_REQUEST if str(error) == DIRECT_REQUEST else "upstream stream broke off"
        # With an event id the client can come back for the rest, and an error would tell it not to.
        comes_back = bool(decoder.last_event_id) and not modern
        found = [] if message is None else [data for data in last if answers(data, message)]
        if found:
            self._answered(counted, message, found[-1])
        elif message is not None and not comes_back:
            count(reason)
            await stream.send(encode_event(error_message(message.raw_id, INTERNAL_ERROR, reason), "message"))
        await stream.end()


def opened(message: RpcMessage | None, response: UpstreamResponse, body: bytes) -> bool:
    """Tell whether an answer agrees to begin a session; one that is a stream shows it only later."""
    if message is None or message.method != INITIALIZE or not 200 <= response.status < 300:
        return False
    return not body or b'"result"' in body


def target_headers(
    policies: BackendPolicies,
    fields: Sequence[tuple[str, str]],
    accept: str,
    message: RpcMessage | None,
    dropped: frozenset[str] = frozenset(),
) -> list[tuple[str, str]]:
    """Return what a target is sent in front of its policies: the client's `fields` that are meant for it, and what the
    body says. `dropped`: fields that are not meant for this one.
    """
    passed = unverified(policies, fields)
    secrets = credentials_of(origin_of(fields))
    headers: list[tuple[str, str]] = []
    for field in fields:
        name, value = field
        lower = name.lower()
        if type(value) is GatewayValue:
            headers.append((name, str(value)))
            continue
        meant = lower not in NOT_FORWARDED and lower not in dropped and not lower.startswith(RELAY)
        if (meant or lower == passed) and not (secrets and any(one in value for one in secrets)):
            headers.append(field)
    headers.append(("accept", accept))
    if message is not None:
        headers.append(("content-type", JSON))
        headers += mirrored.of(message)
    return headers


def credentials_of(origin: RequestContext | None) -> list[str]:
    """Return the texts that proved who asks: where an expression found one, it is still in its field."""
    if origin is None:
        return []
    return [one.decode("latin-1") for one in (origin.jwt_token, origin.api_key_text) if one]


def unverified(policies: BackendPolicies, fields: Sequence[tuple[str, str]]) -> str | None:
    """Return the field of the client's credential where `passthrough` asks for it and no policy took it; else None."""
    auth, origin = policies.auth, origin_of(fields)
    if auth is None or not isinstance(auth.main, Passthrough):
        return None
    return "authorization" if origin is None or origin.jwt_token is None else None


def shape_of(method: str, message: RpcMessage | None, response: UpstreamResponse) -> AnswerShape:
    """Tell how an answer is passed on; raises McpFailure for one that is no answer to the request."""
    asks = method == "GET" or (message is not None and message.kind is RpcKind.REQUEST)
    if not asks or not 200 <= response.status < 300 or response.status in (202, 204):
        return AnswerShape.PLAIN
    if (response.header("content-encoding") or "identity").lower() != "identity":
        raise McpFailure(502, "upstream answer has an unknown content encoding", INTERNAL_ERROR)
    kind = (response.header("content-type") or "").split(";")[0].strip().lower()
    if kind == STREAM:
        return AnswerShape.STREAM
    if kind == JSON and method != "GET":
        return AnswerShape.EVENT
    raise McpFailure(502, f"upstream answer has content type {kind[:80] or 'none'}", INTERNAL_ERROR)


async def blocks(
    response: UpstreamResponse, decoder: SseDecoder, modern: bool
) -> AsyncGenerator[tuple[bytes, list[bytes]], None]:
    """Yield what has come in whole blocks, each time with the data of events that may be an answer; raises
    TargetFailure. `modern`: the server may not ask anything.
    """
    try:
        async for chunk in response:
            found = decoder.split(chunk)
            if modern and any(event is not None and asks(event.data) for _, event in found):
                raise TargetFailure(DIRECT_REQUEST)
            if found:
                yield passed(found)
    except (OSError, SseError) as error:
        raise TargetFailure(f"upstream stream broke off: {error}") from error
    # An event that nothing ends is none, but there are servers that forget the blank line behind the last one.
    found = decoder.split(b"\n\n") if decoder.rest() else []
    if found and all(event is None or whole(event.data) for _, event in found):
        yield passed(found)


def passed(found: list[tuple[bytes, Event | None]]) -> tuple[bytes, list[bytes]]:
    """Return the bytes of events for the client, and the data of those that may be an answer."""
    data = [event.data for _, event in found if event is not None and any(mark in event.data for mark in ANSWER_MARKS)]
    return b"".join(raw if event is None else named(raw, event.data) for raw, event in found), data


def whole(data: bytes) -> bool:
    """Tell whether the data of an event is a message."""
    try:
        parse(data)
    except NotAMessage:
        return False
    return True


def asks(data: bytes) -> bool:
    """Tell whether an event is a request of the server."""
    if b'"method"' not in data:
        return False
    try:
        return parse(data).kind is RpcKind.REQUEST
    except NotAMessage:
        return False


def named(raw: bytes, data: bytes) -> bytes:
    """Return an event with its name: `message` is what no name means, and there are clients that want to see it."""
    if raw.startswith(NAMES) or b"\nevent" in raw or b"\revent" in raw or not data:
        return raw
    return b"event: message\n" + raw


async def read(response: UpstreamResponse) -> bytes:
    """Return the body of an answer that is no stream; raises McpFailure."""
    try:
        return await response.read(MAX_BODY)
    except (OSError, ValueError) as error:
        raise McpFailure(502, f"upstream answer broke off: {error}", INTERNAL_ERROR) from error


def answers(data: bytes, message: RpcMessage) -> bool:
    """Tell whether an event is the response to a request."""
    try:
        found = parse(data)
    except NotAMessage:
        return False
    return found.kind is RpcKind.RESPONSE and agree(found.raw_id, message.raw_id)


def edited(headers: list[tuple[str, str]], modifier: HeaderModifier | None) -> list[tuple[str, str]]:
    """Return the fields after a header modifier: add, set, remove."""
    if modifier is None:
        return headers
    gone = {name.lower() for name, _ in modifier.set} | {name.lower() for name in modifier.remove}
    kept = [(name, value) for name, value in [*headers, *modifier.add] if name.lower() not in gone]
    removed = {name.lower() for name in modifier.remove}
    return kept + [(name, value) for name, value in modifier.set if name.lower() not in removed]
