"""HTTP+SSE (revision 2024-11-05) in front of any targets: GET opens the event stream, POST requests carry messages.

The stream is the session: both live in the worker that has the client's connection. POST requests that reach another
worker are relayed to it. Source: https://modelcontextprotocol.io/specification/2024-11-05/basic/transports
"""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import parse_qsl

from headgate.backend.contract import BackendCall, BegunCall, ResponseStream
from headgate.backend.mcp.failure import McpFailure, error_of, session_not_found
from headgate.backend.mcp.federation.answering import Answering, merged, response_to
from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.requests import fields_of
from headgate.backend.mcp.federation.service import INFO, FederationService
from headgate.backend.mcp.front import STREAM_HEADERS, check_local
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.request_telemetry import Count, RequestTelemetry, log_without_message, telemetry_of
from headgate.backend.mcp.session import Sessions, owner_of
from headgate.dialect.mcp import merge
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    NotAMessage,
    RpcKind,
    RpcMessage,
    parse,
)
from headgate.dialect.mcp.methods import INITIALIZE
from headgate.net.tasks import spawn
from headgate_engine.context.redact import HiddenParameter
from headgate_engine.context.request import RequestContext, derived_context
from headgate_engine.link.handler import HandlerHeaders
from headgate_engine.sse.encode import encode_comment, encode_event

PATH: Final = "/sse"
SESSION_PARAMETER: Final = "sessionId"
KEEPALIVE_SECONDS: Final = 15.0
# Maximum number of messages that wait for the client; senders of further messages wait.
QUEUE: Final = 64
# Maximum number of requests in progress per session.
MAX_PENDING: Final = 256


class Posted:
    """The data of a POST that was answered already: its fields and its client, for targets and rules."""

    gone = True

    def __init__(self, call: BackendCall) -> None:
        self.telemetry: RequestTelemetry | None = None
        self.begun: BegunCall | None = None
        self.task: Any = None
        items = call.headers.items()
        source: RequestContext | None = call.context
        self.authority, self.secure = call.authority, call.secure
        self.context = derived_context(source, call.method, call.target, call.authority, items, call.body)
        self.headers = HandlerHeaders(items)
        self.method, self.target, self.path, self.body = call.method, call.target, call.path, call.body

    @property
    def place(self) -> object:
        """None: the request was counted already."""
        return None

    def route_labels(self) -> str:
        """Return no labels: the request was counted already."""
        return ""

    def add_log_field(self, key: str, value: object) -> None:
        """Drop the field: the log line was written already."""

    def reply(self, *_: Any, **__: Any) -> None:
        """Raise ConnectionResetError: the request was answered already."""
        raise ConnectionResetError("the request is answered")

    def stream(self, status: int, headers: Any = ()) -> ResponseStream:
        """Raise ConnectionResetError: the request was answered already."""
        raise ConnectionResetError("the request is answered")


class Outbox:
    """The event stream of a session, shared by several senders. Senders wait for a slow client."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(QUEUE)

    async def send(self, data: bytes) -> None:
        """Add an encoded event."""
        await self._waiting.put(data)

    async def emit(self, text: bytes) -> None:
        """Add a message."""
        await self.send(encode_event(text, "message"))

    async def end(self) -> None:
        """Do nothing: the stream continues when one of its sources has ended."""

    async def pump(self, stream: ResponseStream) -> None:
        """Send events to the client until it disconnects, with comments as keep-alive."""
        while True:
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    data = await self._waiting.get()
            except TimeoutError:
                data = encode_comment()
            await stream.send(data)


class ToOutbox(Answering):
    """Responses to a request that are sent as messages on the session's stream."""

    def __init__(self, call: BackendCall, outbox: Outbox) -> None:
        super().__init__(call, [])
        self._outbox = outbox

    async def emit(self, text: bytes) -> None:
        """Send a message."""
        await self._outbox.emit(text)

    async def close_stream(self, retry_s: float) -> None:
        """Do nothing: the session's stream outlives the request."""

    @property
    def begun(self) -> bool:
        """True: failures are always sent as messages."""
        return True


class SseSession:
    """One client: its targets, and its requests in progress."""

    dead = False

    def __init__(self, federation: FederationService) -> None:
        self._federation = federation
        self._options = federation.options
        self.group = LinkGroup({name: make(None) for name, make in federation.links.items()}, self._options.bare)
        self.outbox = Outbox()
        self._opened = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def take(self, message: RpcMessage, call: BackendCall) -> None:
        """Take a message; a request is answered later, on the stream. Raises McpFailure."""
        if message.kind is not RpcKind.REQUEST:
            if self._opened:
                await self._federation.pass_on(call, self.group, message)
            return
        if len(self._tasks) >= MAX_PENDING:
            raise McpFailure(503, "too many requests are in progress")
        self._start("mcp sse request", self._answer(message, call))

    def _start(self, name: str, work: Any) -> None:
        task = spawn(name, work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: RpcMessage, call: BackendCall) -> None:
        try:
            text = await self._respond(message, call)
        except McpFailure as failure:
            text = failure.identified(call.context).in_stream(message.raw_id)
        await self.outbox.emit(text)

    async def _respond(self, message: RpcMessage, call: BackendCall) -> bytes:
        if message.method == INITIALIZE and not self._opened:
            return await self._open(message, call)
        if not self._opened:
            raise McpFailure(400, "initialize first", INVALID_REQUEST)
        answering = ToOutbox(call, self.outbox)
        return await self._federation.requests.respond(call, self.group, message, answering)

    async def _open(self, message: RpcMessage, call: BackendCall) -> bytes:
        """Initialize the targets, and then open their event streams."""
        fields = fields_of(call)
        check = self._federation.requests.check(call, message, fields)
        if check is not None:
            await check.request(list(self.group.links), None)
        outcomes = await self.group.ask_all(list(self.group.links), message, fields, self.outbox.emit)
        good = {name: one.result for name, one in outcomes.items() if one.result is not None}
        bad = [(name, one) for name, one in outcomes.items() if not one.good]
        if bad and (not self._options.tolerant or not good):
            name, outcome = bad[0]
            if outcome.error is not None:
                raise error_of(name, outcome.error)
            raise McpFailure(500, f"failed to start session: {name}: {outcome.failure}", INTERNAL_ERROR)
        for name, _ in bad:
            await self.group.links.pop(name).close()
        result = next(iter(good.values()))
        if not self._options.bare:
            result = merge.initialize(good, message.protocol_version, INFO)
        text = response_to(message, result)
        if check is not None:
            text = await check.response(list(self.group.links), text)
        self._opened = True
        self._start("mcp sse events", self._listen(call))
        return text

    async def _listen(self, call: BackendCall) -> None:
        streams = await self.group.streams(fields_of(call))
        if streams:
            await merged(self.outbox, self.group, streams)

    async def stop(self) -> None:
        """Cancel requests in progress and end the sessions at the targets."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.group.stop()


class LegacySse:
    """The sessions of one backend. `federation` provides the targets; `count` is called with the telemetry of every
    message with a method when it is accepted, since its response comes on the stream.
    """

    def __init__(self, federation: FederationService, sessions: Sessions, relay: Relay, count: Count) -> None:
        self.federation = federation
        self.sessions = sessions
        self._relay = relay
        self._count = count
        # The name of the only target, None if there are several.
        self._target = next(iter(federation.links)) if federation.options.bare else None
        # Whoever has the id of a session can use it.
        self._hidden = HiddenParameter(SESSION_PARAMETER)

    async def handle(self, call: BackendCall, local_only: bool) -> None:
        """Answer one request. `local_only`: admit only programs and pages of this machine (front.FrontOptions)."""
        try:
            if local_only and telemetry_of(call) is None:
                check_local(call)
            if call.method == "GET":
                await self._get(call)
            elif call.method == "POST":
                await self._post(call)
            else:
                call.reply(405, [("allow", "GET, POST")], reason="MCP")
        except McpFailure as failure:
            status, headers, body = failure.identified(call.context).answer(None)
            call.add_log_field("mcp.error.message", failure.message)
            call.reply(status, headers, body, reason="MCP")

    async def _get(self, call: BackendCall) -> None:
        with self.sessions.room():
            found = SseSession(self.federation)
            session = self.sessions.add(found, owner_of(call.context))
        log_without_message(call, session.id, self._target)
        try:
            with self.sessions.in_use(session):
                stream = call.stream(200, STREAM_HEADERS)
                await stream.send(encode_event(endpoint(call, session.id).encode(), "endpoint"))
                await found.outbox.pump(stream)
        finally:
            await self.sessions.remove(session.id)

    async def _post(self, call: BackendCall) -> None:
        session_id = dict(parse_qsl(call.target.partition("?")[2])).get(SESSION_PARAMETER)
        if session_id is None:
            raise McpFailure(422, f"the query has no {SESSION_PARAMETER}")
        worker = self.sessions.owner(session_id)
        here = worker is None or worker == self._relay.index
        session = self.sessions.find(session_id, owner_of(call.context)) if here else None
        if here and session is None:
            raise session_not_found()
        try:
            message = parse(call.body)
        except NotAMessage as error:
            raise McpFailure(400, str(error), error.code) from None
        # A relayed request has its telemetry in the worker that received it.
        if message.method is not None and telemetry_of(call) is None:
            call.telemetry = RequestTelemetry(call, message, session_id, self._target, self._count)
        if session is None:
            assert worker is not None
            await self._relay.forward(call, worker, self.federation.key)
            return
        posted = Posted(call)
        if message.method is not None:
            # Expressions read it after this request.
            posted.telemetry = RequestTelemetry(posted, message, session_id, self._target, uncounted)
        await session.server.take(message, posted)
        call.reply(202)


def uncounted(_call: BackendCall, _telemetry: RequestTelemetry) -> None:
    """Do nothing: the request was counted where it was received."""


def endpoint(call: BackendCall, session_id: str) -> str:
    """Return the path and query for the client's POST requests: those of its GET, with the session id added."""
    context: RequestContext | None = call.context
    target = call.target if context is None else context.client_target
    if not target.startswith("/") or any(char <= " " for char in target):
        target = PATH
    return f"{target}{'&' if '?' in target else '?'}{SESSION_PARAMETER}={session_id}"
