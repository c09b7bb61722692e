"""StreamableHTTP in front of several servers: one session with the client, and one with each target."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from headgate import __version__
from headgate.backend.contract import BackendCall, ResponseStream
from headgate.backend.mcp.event_streams import Note
from headgate.backend.mcp.failure import McpFailure, SharedStoreAway, TargetFailure, session_not_found
from headgate.backend.mcp.federation.answering import Answering, answered, merged, refuse, response_to
from headgate.backend.mcp.federation.group import LinkGroup
from headgate.backend.mcp.federation.link import LinkFactory
from headgate.backend.mcp.federation.requests import FederationOptions, Guard, Requests, fields_of, nobody
from headgate.backend.mcp.federation.resume_token import links_of, resume_token_of
from headgate.backend.mcp.front import STREAM_HEADERS, needs_session
from headgate.backend.mcp.relay import Relay, relayed
from headgate.backend.mcp.replay import HEADER as LAST_EVENT_ID
from headgate.backend.mcp.request_telemetry import logged_session_id
from headgate.backend.mcp.resuming import worker_of
from headgate.backend.mcp.session import McpSession, Sessions, owner_of
from headgate.backend.mcp.states import SessionStates
from headgate.backend.mcp.targets.remote import Remote
from headgate.dialect.mcp import merge, naming
from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, RpcKind, RpcMessage, parse
from headgate.dialect.mcp.versions import SESSION_HEADER
from headgate_engine.sse.encode import encode_event

if TYPE_CHECKING:
    from headgate.backend.mcp.guardrails.chain import Guardrails

logger = logging.getLogger("headgate.mcp")

KEEPALIVE_SECONDS: Final = 15.0
INFO: Final = {"name": "headgate", "title": "Headgate", "version": __version__}


class FederationService:
    """The service of a backend with several targets.

    `links`: a factory for each target, in configured order. `states`: makes the ids of sessions that live at remote
    targets only; None if a target is a child process.
    """

    def __init__(
        self,
        key: str,
        links: dict[str, LinkFactory],
        sessions: Sessions,
        relay: Relay,
        options: FederationOptions,
        states: SessionStates | None,
    ) -> None:
        self.key = key
        self.sessions = sessions
        self.requests = Requests(options)
        self.remotes: dict[str, Remote] = {}
        self.links = links
        self._relay = relay
        self.options = options
        self._states = states

    def renew(
        self, remotes: dict[str, Remote], options: FederationOptions, guard: Guard | None, guardrails: Guardrails | None
    ) -> None:
        """Apply the policies, rules and policy servers of a newer configuration to existing sessions.

        `options` may change only `tolerant`: names stay valid.
        """
        self.options = options
        self.requests.tolerant = options.tolerant
        self.requests.guard = guard
        self.requests.guardrails = guardrails
        for name, remote in remotes.items():
            self.remotes[name].renew(remote)

    # -- POST, GET and DELETE ------------------------------------------------------------------------------------------
    async def post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None:
        """Serve a message of the client. Raises McpFailure."""
        if session_id is None:
            if needs_session(message):
                raise McpFailure(400, "a session id is required; initialize first")
            await self._initialize(call, message)
            return
        session = await self._session(call, session_id)
        if session is None:
            return
        with self.sessions.in_use(session):
            if message.kind is RpcKind.REQUEST:
                answering = Answering(call, [], session.answers)
                work = self.requests.respond(call, session.server, message, answering)
                await answered(call, answering, message, work)
            else:
                await self.pass_on(call, session.server, message)
                call.reply(202)

    async def get(self, call: BackendCall, session_id: str | None) -> None:
        """Stream the targets' unsolicited messages. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        last_id = call.headers.get(LAST_EVENT_ID)
        worker = worker_of(last_id)
        if worker is not None and self._relay.knows(worker) and not relayed(call):
            await self._relay.forward(call, worker, self.key)
            return
        session = await self._session(call, session_id)
        if session is None:
            return
        with self.sessions.in_use(session):
            kept = session.answers.find(last_id)
            if kept is not None and last_id is not None:
                await kept.follow(call.stream(200, STREAM_HEADERS), last_id)
                return
            if not await self._listen(call, session, last_id):
                call.reply(405, [("allow", "POST, DELETE")], reason="MCP")

    @staticmethod
    async def _listen(call: BackendCall, session: McpSession, last_id: str | None) -> bool:
        """Run one event stream of the session. Return False if no target has one, and nothing was answered."""
        group: LinkGroup = session.server
        opened: list[ResponseStream] = []

        def stream() -> ResponseStream:
            if not opened:
                opened.append(call.stream(200, STREAM_HEADERS))
            return opened[0]

        async def listen(note: Note) -> Coroutine[Any, Any, None] | None:
            missed = [] if opened else session.replay.after(last_id)
            found = await group.streams(fields_of(call))
            return pass_on(missed, found, note) if found else None

        async def pass_on(
            missed: list[tuple[str, bytes]], found: dict[str, AsyncGenerator[bytes, None]], note: Note
        ) -> None:
            for event_id, text in missed:
                await stream().send(encode_event(text, "message", event_id))
            await merged(stream(), group, found, note)

        served = await session.streams.serve(last_id, listen, lambda data: stream().send(data))
        if opened or served:
            with contextlib.suppress(ConnectionResetError):
                await stream().end()
        return served

    async def delete(self, call: BackendCall, session_id: str | None) -> None:
        """End the session at the gateway and at the targets. Raises McpFailure."""
        if session_id is None:
            raise McpFailure(400, "a session id is required")
        if relayed(call) and self._is_sealed(session_id):
            await self.sessions.end_here(session_id)
            call.reply(200)
            return
        try:
            session = await self._session(call, session_id)
        except SharedStoreAway:
            raise
        except McpFailure:
            # It is gone, or never was. Other replicas may not have been told yet.
            if self.sessions.has_tombstone(session_id):
                await self.sessions.tell_replicas(session_id)
            call.reply(200)
            return
        if session is not None:
            await self._end(session_id)
            call.reply(200)

    async def _end(self, session_id: str) -> None:
        """End a session at every worker and replica."""
        sealed, lasting = self._is_sealed(session_id), bool(self.sessions.resume_token(session_id))
        await self.sessions.remove(session_id)
        self.sessions.tombstone(session_id)
        if sealed:
            await self._relay.tell_ended(session_id, self.key)
        if sealed or lasting:
            await self.sessions.tell_replicas(session_id)

    # -- sessions ------------------------------------------------------------------------------------------------------
    def _is_sealed(self, session_id: str) -> bool:
        """Return True if any worker can resume the session, because its id contains the sessions at the targets."""
        return self._states is not None and self.sessions.owner(session_id) is None

    async def _session(self, call: BackendCall, session_id: str) -> McpSession | None:
        """Return the session; None if another worker has responded."""
        owner = owner_of(call.context)
        session = self.sessions.find(session_id, owner)
        if session is not None:
            self.sessions.confirm(session)
            return session
        worker = self.sessions.owner(session_id)
        if worker is not None and worker != self._relay.index:
            lasting = self._relay.knows(worker) and bool(self.sessions.resume_token(session_id))
            await self._relay.forward(call, worker, self.key, lasting)
            return None
        if worker is not None:
            session = await self._restored(session_id, owner)
        elif self._states is not None:
            session = await self._resumed(session_id, owner)
        if session is None:
            raise session_not_found()
        return session

    async def _restored(self, session_id: str, owner: str) -> McpSession | None:
        """Return a session that this worker's predecessor had, or the same worker of another replica."""
        token = self.sessions.resume_token(session_id)
        links = links_of(token, self.key, owner, self.links, self.sessions.oldest())
        if links is None or await self.sessions.was_ended(session_id):
            return None
        # Another request of the session may have restored it meanwhile.
        found = self.sessions.find(session_id, owner)
        return found or self.sessions.restore(session_id, LinkGroup(links, self.options.bare), owner)

    async def _resumed(self, session_id: str, owner: str) -> McpSession | None:
        """Return a session that another worker or process started, from the data in its id."""
        assert self._states is not None
        states = self._states.open(session_id, owner, self.sessions.oldest())
        if states is None or await self.sessions.was_ended(session_id):
            return None
        found = self.sessions.find(session_id, owner)
        if found is not None:
            return found
        if missing := sorted(set(states) - set(self.links)):
            logger.info("session belongs to other targets", extra={"missing": ",".join(missing)})
            return None
        if not self.options.tolerant and (new := sorted(set(self.links) - set(states))):
            # The session lacks a target, which the configuration does not tolerate.
            logger.info("session belongs to other targets", extra={"new": ",".join(new)})
            return None
        group = LinkGroup({name: self.links[name](state) for name, state in states.items()}, self.options.bare)
        return self.sessions.adopt(session_id, group, owner)

    async def _initialize(self, call: BackendCall, message: RpcMessage) -> None:
        with self.sessions.room():
            group = LinkGroup({name: make(None) for name, make in self.links.items()}, self.options.bare)
            kept = False
            try:
                fields = fields_of(call)
                check = self.requests.check(call, message, fields)
                if check is not None:
                    await check.request(list(group.links), None)
                outcomes = await group.ask_all(list(group.links), message, fields, nobody)
                good = {name: outcome.result for name, outcome in outcomes.items() if outcome.result is not None}
                bad = [(name, outcome) for name, outcome in outcomes.items() if not outcome.good]
                if bad and (not self.options.tolerant or not good):
                    refuse(call, message, *bad[0])
                    return
                for name, _ in bad:
                    call.add_log_field("mcp.error.message", f"target {name} is skipped")
                    await group.links.pop(name).close()
                result = next(iter(good.values()))
                if not self.options.bare:
                    result = merge.initialize(good, message.protocol_version, INFO)
                text = response_to(message, result)
                if check is not None:
                    text = await check.response(list(group.links), text)
                session = self._begun(group, owner_of(call.context))
                self.sessions.await_client(session)
                call.add_log_field("mcp.session.id", logged_session_id(session.id))
                kept = True
            finally:
                if not kept:
                    await group.stop()
        stream = call.stream(200, [*STREAM_HEADERS, (SESSION_HEADER, session.id)])
        await stream.send(encode_event(text, "message"))
        await stream.end()

    def _begun(self, group: LinkGroup, owner: str) -> McpSession:
        if self._states is None or any(link.pinned for link in group.links.values()):
            return self.sessions.add(group, owner, resume_token_of(group, self.key, owner, int(time.time())))
        states = ((name, link.state) for name, link in group.links.items())
        session_id = self._states.seal(states, owner, int(time.time()))
        return self.sessions.adopt(session_id, group, owner)

    # -- notifications and responses -----------------------------------------------------------------------------------
    async def pass_on(self, call: BackendCall, group: LinkGroup, message: RpcMessage) -> None:
        """Forward a notification or a response to the targets concerned; raises McpFailure."""
        fields = fields_of(call)
        if message.kind is RpcKind.RESPONSE:
            if message.is_error and message.raw_id in (None, b"null"):
                # An error without an id cannot be assigned to a target.
                return
            place = naming.split_request_id(message.raw_id)
            if place is None or place[0] not in group.links:
                raise McpFailure(400, "the response does not belong to a request of a target")
            answer = parse(message.with_id(place[1]))
            await self._send_notifications([group.links[place[0]].notify(answer, fields)])
            return
        await self._send_notifications([link.notify(message, fields) for link in group.links.values()])

    async def _send_notifications(self, calls: list[Awaitable[None]]) -> None:
        failures = [one for one in await asyncio.gather(*calls, return_exceptions=True) if one is not None]
        for failure in failures:
            if not isinstance(failure, TargetFailure):
                raise failure
        if failures and not self.options.tolerant:
            raise McpFailure(500, f"failed to send message: {failures[0]}", INTERNAL_ERROR)
