"""Compiles MCP backends to engine handlers. Backends with unchanged targets keep their sessions over a reload."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.direct_service import DirectService, never_waits
from headgate.backend.mcp.federation.bridged import BridgedService
from headgate.backend.mcp.federation.link import HttpLink, Link, LinkFactory, ServerLink
from headgate.backend.mcp.federation.modern_link import EitherLink
from headgate.backend.mcp.federation.requests import FederationOptions, Guard, Requests
from headgate.backend.mcp.federation.service import INFO, FederationService
from headgate.backend.mcp.federation.stateless import StatelessService, SuspendedCallRouting
from headgate.backend.mcp.federation.stateless_target import StatelessTarget
from headgate.backend.mcp.federation.suspended_calls import HOLD_SECONDS, SuspendedCalls
from headgate.backend.mcp.front import Front, FrontOptions, McpService
from headgate.backend.mcp.http_service import HttpService
from headgate.backend.mcp.legacy_sse import PATH as SSE_PATH
from headgate.backend.mcp.legacy_sse import LegacySse
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import SessionIds, Sessions
from headgate.backend.mcp.states import SessionStates
from headgate.backend.mcp.stdio_service import StdioService
from headgate.backend.mcp.targets.remote import Remote
from headgate.backend.mcp.targets.stdio import StdioServer
from headgate.backend.mcp.well_known import WellKnown
from headgate.dialect.mcp.naming import task_id_prefix
from headgate.document.lazy_dataclass import replace
from headgate.ir.digest import digest
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import (
    McpBackend,
    McpTarget,
    OpenApiTarget,
    RemoteTarget,
    SseTarget,
    StdioTarget,
    StreamableHttpTarget,
)
from headgate.ir.policies import NO_BACKEND_POLICIES
from headgate.ir.policy.authorization import Authorization
from headgate.ir.policy.backend_auth import Passthrough
from headgate.net.authority import own_authority
from headgate.net.tasks import spawn
from headgate.pipeline.mcp_requests import McpRequests
from headgate.pipeline.mcp_sessions import SessionTables, nothing_shared
from headgate.pipeline.phases import request_steps
from headgate.pipeline.replies import FORBIDDEN, reply_of
from headgate.pipeline.steps import at_host
from headgate.policy.environment import Environment
from headgate_engine.context.request import RequestContext
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.link.worker import Worker
from headgate_engine.mcp.direct import DirectBackend, FederatedBackend
from headgate_engine.mcp.meter import McpTargetMeter
from headgate_engine.mcp.settings import DirectTarget
from headgate_engine.plan.step import CONTINUE_VERDICT, run_step
from headgate_engine.steps.authorization import AuthorizationStep

Handle = Callable[[BackendCall], Awaitable[None]]

if TYPE_CHECKING:
    from headgate.backend.mcp.ended import EndedSessions
    from headgate.backend.mcp.guardrails.chain import Guardrails

# Before the ids of sessions that the gateway holds for the one server of a backend, which has none.
BRIDGED = "gwb."


class McpHandlers:
    """The MCP backends of one configuration in one worker."""

    def __init__(
        self,
        worker: Worker,
        gateway: Gateway,
        relay: Relay,
        previous: McpHandlers | None,
        ended: Callable[[], EndedSessions | None] = nothing_shared,
    ) -> None:
        self._worker = worker
        before = None if previous is None else previous.tables
        self.tables: SessionTables = SessionTables(worker, gateway, relay.ids, before, ended)
        self._relay = relay
        self.ids: SessionIds = relay.ids
        self._several = gateway.process.workers.resolve(len(os.sched_getaffinity(0))) > 1
        self._previous = previous
        self.environment: Environment | None = None
        self._renewals: list[Callable[[], None]] = []
        self._backends: dict[str, McpBackend] = {}
        self._handlers: dict[str, HandlerBackend | DirectBackend] = {}
        self._handles: dict[str, Handle] = {}
        self._requests: dict[str, McpRequests] = {}
        self._remotes: dict[str, dict[str, Remote]] = {}
        self.services: dict[str, StdioService | FederationService | HttpService] = {}
        # By backend, target and what identifies the target: one that has changed is another one.
        self.meters: dict[tuple[str, str, str], McpTargetMeter] = {}
        self.legacy: dict[str, LegacySse] = {}
        self.sessionless: dict[str, StatelessService] = {}

    def get(self, backend: McpBackend) -> HandlerBackend | DirectBackend:
        """Return the handler of a backend."""
        if self._backends.setdefault(backend.key, backend) != backend:
            # Routes may give one backend rules and policy servers of their own.
            backend = replace(backend, key=f"{backend.key}/{digest(backend.rules, backend.guardrails)}")
        handler = self._handlers.get(backend.key)
        if handler is None:
            # Without sessions /sse is a path like others: a GET is refused, a POST served.
            legacy = None if backend.stateless else self._legacy(backend)
            handle = self._entrance(self._front(backend), legacy, self._documents(backend), backend.local_only)
            handler = self._direct(backend, HandlerBackend(self._worker, backend.name, handle))
            self._handlers[backend.key] = handler
            self._handles[backend.key] = handle
        return handler

    def _direct(self, backend: McpBackend, handler: HandlerBackend) -> HandlerBackend | DirectBackend:
        """Return a handler that answers plain calls in the engine and passes others to `handler`. Returns `handler`
        itself if no call is plain."""
        service = self.services.get(backend.key)
        if backend.stateless or backend.local_only:
            return handler
        counts = self._counts(backend)
        if isinstance(service, HttpService):
            target = backend.targets[0]
            plain = direct_target(target, service.remote, self._meter(backend, target))
            policies = target.policies if isinstance(target, StreamableHttpTarget) else NO_BACKEND_POLICIES
            own = DirectService(service.sessions, target.name, policies, counts)
            return handler if plain is None else DirectBackend(handler, plain, own)
        read = backend.bare or backend.rules is not None or bool(backend.guardrails)
        if read or not isinstance(service, FederationService):
            return handler
        # Those of this configuration: the running service gets them when it is in force.
        remotes = self._remotes[backend.key]
        found = {
            target.name: direct_target(target, remotes.get(target.name), self._meter(backend, target))
            for target in backend.targets
        }
        direct = {name: target for name, target in found.items() if target is not None}
        if not direct:
            return handler
        several = DirectService(service.sessions, None, NO_BACKEND_POLICIES, counts)
        return FederatedBackend(handler, direct, several, prefixed=backend.prefixed)

    def _counts(self, backend: McpBackend) -> McpRequests:
        """Return the request counter of a backend."""
        return self._requests.setdefault(backend.key, McpRequests(self._worker.segment))

    @staticmethod
    def _entrance(
        front: Front, legacy: LegacySse | None, documents: WellKnown | None, local_only: bool
    ) -> Handle:
        """Return the handler that dispatches a request to a transport or to the OAuth documents of the server."""

        async def handle(call: BackendCall) -> None:
            if legacy is not None and call.path == SSE_PATH:
                await legacy.handle(call, local_only)
            elif documents is not None and documents.takes(call):
                await documents.handle(call)
            else:
                await front.handle(call)

        return handle

    def _documents(self, backend: McpBackend) -> WellKnown | None:
        """Return the handler that forwards requests for OAuth documents to the single remote server. Route policies run
        before it."""
        target = backend.targets[0]
        if len(backend.targets) > 1 or not isinstance(target, StreamableHttpTarget | SseTarget):
            return None
        return WellKnown(self._remote(target), backend.local_only)

    def _legacy(self, backend: McpBackend) -> LegacySse:
        """Return the sessions over HTTP+SSE, the running ones when the backend has not changed."""
        federation = self._federation(backend)
        found = self.legacy.get(backend.key)
        if found is None and self._previous is not None:
            found = self._previous.legacy.get(backend.key)
        if found is None or found.federation is not federation:
            sessions = self.tables.new(backend.name, resumable=False, processes=backend.owns_processes)
            found = LegacySse(federation, sessions, self._relay, McpRequests(self._worker.segment))
        self._keep(found.sessions)
        self.legacy[backend.key] = found
        return found

    def _front(self, backend: McpBackend) -> Front:
        options = FrontOptions(stateless=backend.stateless, local_only=backend.local_only)
        count = self._counts(backend)
        target = backend.targets[0]
        if not backend.plain:
            federation = self._federation(backend)
            sessionless = self._sessionless(backend, federation.requests, None)
            name = target.name if backend.bare else None
            return Front(federation, sessionless, name, count, options)
        service: McpService
        straight: HttpService | None = None
        if isinstance(target, StdioTarget):
            service = BridgedService(self._stdio(target, backend), self._federation(backend))
        else:
            assert isinstance(target, StreamableHttpTarget)
            straight = self._straight(target, backend)
            service = BridgedService(straight, self._federation(backend))
        sessionless = self._sessionless(backend, Requests(FederationOptions(prefixed=False, bare=True)), straight)
        return Front(service, sessionless, target.name, count, options)

    def _remote(self, target: RemoteTarget) -> Remote:
        """Return the client of a target, with its policies."""
        assert self.environment is not None
        authority = own_authority(target.endpoint)
        client = self.environment.client(target.endpoint, "Primary", "Mcp")
        policies = at_host(target.policies, target.endpoint.host)
        steps = (
            *request_steps("backend", policies, self.environment),
            *request_steps("departure", policies, self.environment),
        )  # fmt: skip
        remote = Remote(client, authority, target.policies, steps)
        if not isinstance(target, OpenApiTarget):
            return remote
        from headgate.backend.mcp.targets.openapi import ApiDocument, OpenApiRemote

        endpoint = target.schema.endpoint
        reader = None if endpoint is None else self.environment.client(endpoint)
        return OpenApiRemote(remote, ApiDocument(target.schema, reader))

    def _stdio(self, target: StdioTarget, backend: McpBackend) -> StdioService:
        """Return the service of one process for each session, the running one when the command has not changed."""
        # Not by the target: another backend with the same command has sessions of its own.
        service = None if self._previous is None else self._previous.services.get(backend.key)
        if not isinstance(service, StdioService):
            sessions = self.tables.new(backend.name, resumable=False, processes=backend.owns_processes)
            service = StdioService(target, sessions, self._relay, backend.key, self._meter(backend, target))
        self._keep(service.sessions)
        self.services[backend.key] = service
        return service

    def _straight(self, target: StreamableHttpTarget, backend: McpBackend) -> HttpService:
        """Return the service of a remote server; the sessions of an unchanged one go on."""
        before = None if self._previous is None else self._previous.services.get(backend.key)
        kept = before.sessions if isinstance(before, HttpService) else None
        sessions = self.tables.new(backend.name, resumable=True) if kept is None else kept
        self._keep(sessions)
        tell = partial(self._relay.tell_ended, backend_key=backend.key)
        meter = self._meter(backend, target)
        found = HttpService(target, self._remote(target), sessions, self._states(backend), tell, meter)
        self.services[backend.key] = found
        return found

    def _keep(self, sessions: Sessions) -> None:
        """Apply limits to a table, and the store of this configuration once that is in force."""
        self.tables.apply_limits(sessions)
        if self._previous is not None:
            self._renewals.append(partial(self.tables.share, sessions))

    def _states(self, backend: McpBackend) -> SessionStates:
        return SessionStates(self._relay.ids.sealer(f"mcp links {backend.name}"))

    def _sessionless(
        self, backend: McpBackend, requests: Requests, straight: HttpService | None
    ) -> StatelessService:
        """Return the service for clients without a session. The state of unchanged targets is kept."""
        found = self.sessionless.get(backend.key)
        if found is None and self._previous is not None:
            found = self._previous.sessionless.get(backend.key)
        # Sessions and single requests share what is known of how to reach a target, documents of services above all.
        remotes = self._federation(backend).remotes
        makes = {target.name: self._maker(backend, target, remotes.get(target.name)) for target in backend.targets}
        if found is None:
            targets = {one.name: self._stateless_target(backend, one, makes[one.name]) for one in backend.targets}
            found = StatelessService(targets, self._options(backend), INFO, self._waiting(backend))
            found.renew(makes, self._options(backend), requests, straight)
        else:
            self._renewals.append(partial(found.renew, makes, self._options(backend), requests, straight))
        self.sessionless[backend.key] = found
        return found

    def _waiting(self, backend: McpBackend) -> SuspendedCallRouting:
        """Return the store of calls that wait for an answer of a client without a session."""
        sealer = self._relay.ids.sealer(f"mcp question {backend.key}")
        hold_s = min(self.tables.limits.ttl_s, HOLD_SECONDS)
        return SuspendedCallRouting(SuspendedCalls(sealer, self._relay.index, hold_s), self._relay, backend.key)

    def _stateless_target(self, backend: McpBackend, target: McpTarget, make: Callable[[], Link]) -> StatelessTarget:
        local, meter = isinstance(target, StdioTarget), self._meter(backend, target)
        stateless = StatelessTarget(target.name, make, local, self.tables.limits.ttl_s, meter)
        if isinstance(target, SseTarget):
            stateless.note_transport()
        if stateless.local and self._several:
            stateless.task_id_prefix = task_id_prefix(self._relay.index)
        return stateless

    def _either(self, backend: McpBackend, target: McpTarget, remote: Remote | None) -> LinkFactory:
        factory = self._link(target, remote, self._meter(backend, target))
        return lambda state: EitherLink(factory, state)

    def _maker(self, backend: McpBackend, target: McpTarget, remote: Remote | None) -> Callable[[], Link]:
        factory = self._link(target, remote, self._meter(backend, target))
        return lambda: factory(None)

    @staticmethod
    def _options(backend: McpBackend) -> FederationOptions:
        tolerant = backend.failure_mode == "failOpen"
        return FederationOptions(prefixed=backend.prefixed, bare=backend.bare, tolerant=tolerant)

    def _federation(self, backend: McpBackend) -> FederationService:
        """Return the service of several targets, the running one when the backend has not changed."""
        # Where messages pass unread, it is beside the service that they pass through.
        key = f"bridge/{backend.key}" if backend.plain else backend.key
        found = self.services.get(key)
        if isinstance(found, FederationService):
            return found
        if self._previous is not None:
            found = self._previous.services.get(key)
        remotes = self._remotes[key] = {
            target.name: self._remote(target) for target in backend.targets if not isinstance(target, StdioTarget)
        }
        # Where policy servers are asked no message passes unread.
        open_to_all = everything if backend.guardrails else None
        guard = open_to_all if backend.rules is None else self._guard(backend.rules)
        guardrails = self._guardrails(backend)
        if not isinstance(found, FederationService):
            # Sessions that the gateway bridges live in their worker, as those with a process do.
            here = backend.plain or backend.local
            sessions = self.tables.new(backend.name, resumable=not here, processes=backend.owns_processes)
            if backend.plain:
                sessions.id_prefix = BRIDGED
            found = FederationService(
                backend.key,
                {one.name: self._either(backend, one, remotes.get(one.name)) for one in backend.targets},
                sessions,
                self._relay,
                self._options(backend),
                None if here else self._states(backend),
            )
            found.remotes = remotes
            found.renew({}, self._options(backend), guard, guardrails)
        else:
            # Sessions go on with the rules and policy servers of the newest configuration.
            self._renewals.append(partial(found.renew, remotes, self._options(backend), guard, guardrails))
        self._keep(found.sessions)
        self.services[key] = found
        return found

    def _guardrails(self, backend: McpBackend) -> Guardrails | None:
        if not backend.guardrails:
            return None
        from headgate.pipeline.guardrails import compile_guardrails  # protobuf and gRPC: 8 MB

        assert self.environment is not None
        return compile_guardrails(backend.guardrails, self.environment)

    def _guard(self, rules: Authorization) -> Guard:
        """Return the check that decides whether a client may see a tool, prompt, resource or task."""
        assert self.environment is not None
        program = self.environment.program
        deny, require, allow = (
            [program(text, "mcp") for text in texts] for texts in (rules.deny, rules.require, rules.allow)
        )
        step = AuthorizationStep(deny, require, allow, reply_of(FORBIDDEN))

        def permits(call: BackendCall, kind: str, target: str, name: str) -> bool:
            context: RequestContext | None = call.context
            if context is None:
                return False
            item = {"target": target, "name": name}
            before = context.dynamic
            context.dynamic = {**(before or {}), "mcp": {kind: item}}
            try:
                return run_step(step, context) == CONTINUE_VERDICT
            finally:
                context.dynamic = before

        return permits

    def _meter(self, backend: McpBackend, target: McpTarget) -> McpTargetMeter:
        """Return what counts the calls of a target, that of the last configuration if the target has not changed."""
        key = (backend.name, target.name, target.key)
        found = self.meters.get(key)
        if found is None and self._previous is not None:
            found = self._previous.meters.get(key)
        if found is None:
            found = McpTargetMeter(self._worker.segment, backend.name, target.name)
        self.meters[key] = found
        return found

    def target_states(self) -> list[dict[str, object]]:
        """Return what this worker knows of each target that it has called."""
        states = ((backend, target, meter.state()) for (backend, target, _), meter in self.meters.items())
        return [{"backend": backend, "target": target, **state} for backend, target, state in states if state]

    def _link(self, target: McpTarget, remote: Remote | None, meter: McpTargetMeter) -> LinkFactory:
        if isinstance(target, StdioTarget):
            return lambda _state: ServerLink(target.name, lambda: StdioServer(target, nothing), meter=meter)
        assert remote is not None
        if isinstance(target, StreamableHttpTarget):
            return lambda state: HttpLink(target, remote, state, meter)
        if isinstance(target, SseTarget):
            from headgate.backend.mcp.targets.sse import SseServer

            return lambda _state: ServerLink(target.name, lambda: SseServer(target, remote, nothing), remote, meter)
        from headgate.backend.mcp.targets.openapi import OpenApiLink, OpenApiRemote

        assert isinstance(remote, OpenApiRemote)
        return lambda _state: OpenApiLink(target.name, remote, meter)

    def relayed(self, key: str) -> Handle | None:
        """Return the handler of relayed requests for a target, None if the target is no longer configured."""
        return self._handles.get(key)

    def close_unused(self, current: McpHandlers) -> None:
        """End the sessions of targets that `current` no longer has. The others continue with its policies."""
        for renew in current._renewals:
            renew()
        current._renewals.clear()
        self._previous = None
        for key, service in self.services.items():
            after = current.services.get(key)
            if after is None or after.sessions is not service.sessions:
                spawn("mcp close", service.sessions.aclose())
        for key, legacy in self.legacy.items():
            if current.legacy.get(key) is not legacy:
                spawn("mcp close", legacy.sessions.aclose())
        for key, sessionless in self.sessionless.items():
            if current.sessionless.get(key) is not sessionless:
                spawn("mcp close", sessionless.aclose())
        current._previous = None

    def begin_drain(self) -> None:
        """End the event streams of listening clients, which would otherwise never end."""
        for sessionless in self.sessionless.values():
            sessionless.end_subscriptions()

    async def aclose(self) -> None:
        """End every session."""
        for service in (*self.services.values(), *self.legacy.values()):
            await service.sessions.aclose()
        for sessionless in self.sessionless.values():
            await sessionless.aclose()


def direct_target(target: McpTarget, remote: Remote | None, meter: McpTargetMeter) -> DirectTarget | None:
    """Return a target that the engine can call by itself; None for one whose calls need Python."""
    if not isinstance(target, StreamableHttpTarget) or remote is None:
        return None
    client, steps = remote.compiled
    credential = target.policies.auth
    if not never_waits(steps) or (credential is not None and isinstance(credential.main, Passthrough)):
        return None
    assert isinstance(client, HttpClient)
    timeout_ms = target.policies.request_timeout_ms or 0
    return DirectTarget(client, target.path, steps=steps, timeout_ms=timeout_ms, meter=meter)


def nothing() -> None:
    """Do nothing: a link itself checks whether its server has ended."""


def everything(_call: BackendCall, _kind: str, _target: str, _name: str) -> bool:
    """Allow everything to everybody."""
    return True
