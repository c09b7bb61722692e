"""A target for clients without a session, in either kind of revision.

A server of revision 2026-07-28 gets the client's request unchanged: remote servers by HTTP, local ones through a
process that all such clients share. A server with sessions gets a session for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from headgate import __version__
from headgate.backend.mcp.failure import (
    DIRECT_REQUEST,
    McpFailure,
    OwnFailure,
    OwnRefusal,
    TargetFailure,
    TargetRefusal,
)
from headgate.backend.mcp.federation.link import INITIALIZED, Link
from headgate.backend.mcp.federation.modern_link import EitherLink
from headgate.backend.mcp.federation.shared_process import SharedProcess, with_token
from headgate.backend.mcp.federation.suspended_calls import (
    STATE_PREFIX,
    SuspendedCall,
    SuspendedCallKey,
    SuspendedCalls,
)
from headgate.backend.mcp.federation.target_answer import Fields, RequestTarget, StreamClosed, is_response
from headgate.backend.mcp.session import owner_of
from headgate.backend.mcp.targets.remote import ClientFields, lasting, origin_of
from headgate.dialect.mcp import elicitation, modern, versions
from headgate.dialect.mcp.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    NotAMessage,
    RpcKind,
    RpcMessage,
    error_message,
    parse,
    progress_token,
)
from headgate.dialect.mcp.methods import DISCOVER, INITIALIZE, TASK_REQUESTS
from headgate_engine.mcp.meter import McpTargetMeter

logger = logging.getLogger("headgate.mcp")

# After this time, a server with sessions is probed again, because it may have been updated.
LEGACY_SECONDS: Final = 300.0
REVISIONS_SECONDS: Final = 5.0
# Maximum number of processes that serve a single request each.
MAX_PROCESSES: Final = 64


class StatelessTarget:
    """A target. `make` returns a new link to it; `local`: it is a child process; `idle_s`: idle time of a shared
    process; `meter` counts the requests.

    `suspended`: the store of calls whose servers wait for the client, None if clients cannot be asked.
    `task_id_prefix`: added to task ids if each worker has a process of its own.
    """

    def __init__(
        self, name: str, make: Callable[[], Link], local: bool, idle_s: float, meter: McpTargetMeter | None = None
    ) -> None:
        self.name = name
        self.meter = meter
        self.make = make
        self.local = local
        self.processes = 0
        self._idle_s = idle_s
        self._legacy_until = 0.0
        self._has_sessions = False
        self._revisions: list[str] = []
        self._revisions_until = 0.0
        self._shared_process: SharedProcess | None = None
        self._opening = asyncio.Lock()
        self.suspended: SuspendedCalls | None = None
        self.task_id_prefix = ""

    def link(self, is_modern: bool, version: str | None) -> RequestLink:
        """Return the link for one request; `is_modern`: the client has revision 2026-07-28."""
        return RequestLink(self, is_modern, version)

    @property
    def legacy(self) -> bool:
        """True if the target was recently found to need sessions."""
        return self._has_sessions or time.monotonic() < self._legacy_until

    def note_legacy(self) -> None:
        """Record that the target does not support revision 2026-07-28."""
        logger.info("server has sessions", extra={"target": self.name})
        self._legacy_until = time.monotonic() + LEGACY_SECONDS

    def note_transport(self) -> None:
        """Record that the target's transport needs sessions in any revision."""
        self._has_sessions = True

    def forget_legacy(self) -> None:
        """Probe the revision again: an intermediary may have sent the refusal."""
        self._legacy_until = 0.0

    async def native(self) -> Link | None:
        """Return a link for requests of revision 2026-07-28, None if the target lacks it; raises TargetFailure."""
        if self.legacy:
            return None
        if not self.local:
            return self.make()
        async with self._opening:
            if self._shared_process is None or self._shared_process.closed:
                found = SharedProcess(self.make(), self._idle_s, self.task_id_prefix)
                try:
                    known = await found.speaks_modern()
                except BaseException:
                    await found.close()
                    raise
                if not known:
                    self.note_legacy()
                    await found.close()
                    return None
                self._shared_process = found
            return self._shared_process

    async def revisions(self) -> list[str]:
        """Return the revisions that the target supports; the result is cached."""
        if self._revisions and time.monotonic() < self._revisions_until:
            return self._revisions
        found = list(versions.KNOWN)
        link = self.link(True, None)
        last = b""
        try:
            async with asyncio.timeout(REVISIONS_SECONDS):
                answers = link.request(modern.discover_request(), [(versions.HEADER, versions.MODERN)])
                async with contextlib.aclosing(answers) as texts:
                    async for text in texts:
                        last = text
            found = modern.revisions_of(last) or list(versions.LEGACY)
        except (TargetFailure, TimeoutError):
            logger.warning("server does not list its protocol versions", extra={"target": self.name})
        finally:
            await link.close()
        self._revisions, self._revisions_until = found, time.monotonic() + LEGACY_SECONDS
        return found

    async def end(self, session: Link) -> None:
        """Close a session that was opened for one request."""
        self.processes -= 1
        await session.close()

    async def aclose(self) -> None:
        """Close the shared process."""
        if self._shared_process is not None:
            await self._shared_process.close()


class RequestLink(RequestTarget):
    """The link to a target for one request."""

    pinned = True

    def __init__(self, target: StatelessTarget, is_modern: bool, version: str | None) -> None:
        self.name = target.name
        self.meter = target.meter
        self.capabilities: dict[str, Any] | None = None
        self._target = target
        self._modern = is_modern
        self._version = version if version in versions.LEGACY else versions.LEGACY[-1]
        self._session: Link | None = None
        self._opening = asyncio.Lock()
        self._able: dict[str, Any] = {}

    @property
    def state(self) -> str | None:
        """None: the session ends with the request."""
        return None

    @property
    def timeout_s(self) -> float | None:
        """Return the time-out in the target's policies, in seconds."""
        return (self._session or self._target.make()).timeout_s

    def reaches(self, method: str | None) -> bool:
        """Tell whether requests with this method go to the target."""
        return (self._session or self._target.make()).reaches(method)

    def refuses(self, code: object) -> bool:
        """Tell whether an error with this code comes from the gateway."""
        return (self._session or self._target.make()).refuses(code)

    @property
    def opened(self) -> bool:
        """True if the target has a session for this request."""
        return self._session is not None

    async def native(self) -> Link | None:
        """Return the link that takes the request unchanged, None if the target needs a session."""
        return await self._target.native() if self._modern else None

    async def request(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request; the last one is the response.

        Requests of a server with sessions go to the client if they can be expressed as elicitation.
        Raises TargetFailure, TargetRefusal, or OwnRefusal for what the gateway refuses.
        """
        held = self._held(message, fields)
        native = None if held is not None else await self.native()
        if native is not None:
            try:
                async with contextlib.aclosing(native.request(message, fields)) as texts:
                    async for text in texts:
                        if _request_of(text) is not None:
                            raise TargetFailure(DIRECT_REQUEST)
                        yield text
                return
            except TargetRefusal as error:
                if not modern.is_legacy_refusal(error.status, error.body):
                    raise
                self._target.note_legacy()
        if message.method == DISCOVER:
            yield error_message(message.raw_id, METHOD_NOT_FOUND, f"method not found: {DISCOVER}")
            return
        if held is None:
            # Only now is it known that the server may have sessions.
            held = self._held(message, fields)
        if self._modern and message.method in TASK_REQUESTS:
            # Tasks of such a server end with the session of the request, and have other methods.
            failure = McpFailure(400, f"Unknown task: {message.name}", INVALID_PARAMS)
            raise OwnRefusal(*failure.answer(message.raw_id))
        if self._modern and self._session is None and self._target.suspended is not None:
            self._able = elicitation.capabilities_of(message)
        asks = held is not None or self._asks(message)
        texts = self._conversed(held, message, fields) if asks else self._straight(message, fields)
        async with contextlib.aclosing(texts):
            async for text in texts:
                yield text

    def _asks(self, message: RpcMessage) -> bool:
        """Return True if the client can answer requests of the server."""
        if message.method not in elicitation.METHODS or self._target.suspended is None:
            return False
        return elicitation.askable(self._able)

    def _held(self, message: RpcMessage, fields: Fields) -> SuspendedCall | None:
        """Return the suspended call that the request continues, None without one; raises Refused if it is invalid."""
        state = elicitation.state_of(message) if self._modern else None
        if state is None or self._target.suspended is None:
            return None
        if not (self._target.legacy or state.startswith(STATE_PREFIX)):
            return None
        try:
            call = self._target.suspended.take(state, self._place(message, fields))
        except McpFailure as failure:
            raise OwnRefusal(*failure.answer(message.raw_id)) from None
        self._able, self._version, self._session = elicitation.capabilities_of(message), call.version, call.session
        return call

    def _place(self, message: RpcMessage, fields: Fields) -> SuspendedCallKey:
        return SuspendedCallKey(owner_of(origin_of(fields)), self.name, elicitation.digest_of(message))

    async def _straight(self, message: RpcMessage, fields: Fields) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a request whose client cannot answer requests of the server."""
        session = await self.session(fields) if message.method != INITIALIZE else self._open()
        own = self._fields(fields)
        message = modern.legacy_words(message) if self._modern else message
        async with contextlib.aclosing(session.request(message, own)) as texts:
            async for text in texts:
                question = _request_of(text)
                if question is None:
                    yield text
                else:
                    # The client cannot answer, so the gateway does: the server must not wait.
                    answer = elicitation.own_answer(question, {}) or b""
                    await session.notify(parse(answer), own)

    async def _conversed(
        self, call: SuspendedCall | None, message: RpcMessage, fields: Fields
    ) -> AsyncGenerator[bytes, None]:
        """Yield the messages of a call; the last one is its response, or the server's requests for the client."""
        held = self._target.suspended
        assert held is not None
        begun = call is not None
        if call is None:
            session = await self.session(fields)
            call = SuspendedCall(session, message, self._version, self._target.end)
        own, kept = self._fields(fields), False
        try:
            if begun:
                await call.answer(elicitation.answers_of(message), own)
            else:
                await call.begin(modern.legacy_words(message), lasting(own))
            while True:
                text = await call.next()
                if text is None:
                    state = held.keep(call, self._place(message, fields))
                    if state is not None:
                        kept, self._session = True, None
                        yield elicitation.input_required(message.raw_id, call.questions, state)
                        return
                    await call.refuse(own)
                elif (question := _request_of(text)) is not None:
                    await self._take(call, question, own)
                elif is_response(text, call.message):
                    yield parse(text).with_id(message.raw_id or b"null")
                    return
                else:
                    yield with_token(text, progress_token(message)) if begun else text
        finally:
            if not kept:
                await call.stop()

    async def _take(self, call: SuspendedCall, question: RpcMessage, fields: Fields) -> None:
        """Add a request of the server to those for the client, or answer it."""
        answer = elicitation.own_answer(question, self._able)
        if answer is None and not call.add(question):
            answer = elicitation.refused(question.raw_id or b"null")
        if answer is not None:
            await call.session.notify(parse(answer), fields)

    async def notify(self, message: RpcMessage, fields: Fields) -> None:
        """Forward a notification, unless the server is a shared process."""
        native = await self.native()
        if native is None:
            await (await self.session(fields)).notify(message, self._fields(fields))
        elif not self._target.local:
            # Other clients use the same process, so the notification could affect their requests.
            await native.notify(message, fields)

    async def events(self, fields: Fields) -> AsyncGenerator[bytes, None] | None:
        """Return the event stream of a server with sessions."""
        return await (await self.session(fields)).events(self._fields(fields))

    async def close(self) -> None:
        """Close the server's session, if there is one."""
        session, self._session = self._session, None
        if session is not None:
            await self._target.end(session)

    # -- servers with sessions -----------------------------------------------------------------------------------------
    def _open(self) -> Link:
        if self._session is None:
            if self._target.local and self._target.processes >= MAX_PROCESSES:
                raise OwnFailure("too many processes are running")
            self._target.processes += 1
            # For a client of an earlier revision, a server that only supports 2026-07-28 is bridged.
            make = self._target.make
            self._session = make() if self._modern else EitherLink(lambda _state: make(), None)
        return self._session

    def _fields(self, fields: Fields) -> Fields:
        """Return the client's fields with the revision of the session."""
        kept = [(name, value) for name, value in fields if name.lower() != versions.HEADER]
        return ClientFields([*kept, (versions.HEADER, self._version)], origin_of(fields))

    async def session(self, fields: Fields) -> Link:
        """Return the target's session for this request, opened if necessary; raises TargetFailure."""
        async with self._opening:
            if self._session is not None:
                return self._session
            link = self._open()
            opened = False
            try:
                await self._handshake(link, fields)
                opened = True
            finally:
                if not opened:
                    self._target.forget_legacy()
                    await self.close()
            return link

    async def _handshake(self, link: Link, fields: Fields) -> None:
        opening = modern.synthetic_initialize(
            self._version, "headgate", __version__, elicitation.legacy_capabilities(self._able)
        )
        last = b""
        async with contextlib.aclosing(link.request(opening, self._fields(fields))) as texts:
            async for text in texts:
                last = text
        self._version = _agreed(last)
        self.capabilities = link.capabilities
        await link.notify(parse(INITIALIZED), self._fields(fields))


def _request_of(text: bytes) -> RpcMessage | None:
    """Return a server's message if it is a request, else None."""
    if isinstance(text, StreamClosed):
        return None
    try:
        message = parse(text)
    except NotAMessage:
        return None
    return message if message.kind is RpcKind.REQUEST else None


def _agreed(text: bytes) -> str:
    """Return the revision in a response to `initialize`; raises TargetFailure if it is an error."""
    try:
        found = json.loads(text or b"{}")
    except ValueError:
        found = {}
    result = found.get("result") if isinstance(found, dict) else None
    version = result.get("protocolVersion") if isinstance(result, dict) else None
    if not isinstance(version, str):
        error = found.get("error") if isinstance(found, dict) else None
        reason = error.get("message") if isinstance(error, dict) else "there was no answer"
        raise TargetFailure(f"the server does not begin a session: {reason}")
    return version
