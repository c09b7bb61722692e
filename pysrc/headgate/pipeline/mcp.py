"""MCP backends as engine handlers; those whose target stays keep their sessions over a reload."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.backend.contract import Call
from headgate.backend.mcp.federation.link import HttpLink, LinkFactory, StdioLink
from headgate.backend.mcp.federation.requests import Guard, Manner
from headgate.backend.mcp.federation.service import FederationService
from headgate.backend.mcp.front import Front
from headgate.backend.mcp.http_service import HttpService
from headgate.backend.mcp.relay import Relay
from headgate.backend.mcp.session import Sessions
from headgate.backend.mcp.stdio_service import StdioService
from headgate.dialect.mcp.versions import METHODS
from headgate.ir.digest import digest
from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.ir.mcp import McpBackend, McpTarget, StdioTarget
from headgate.ir.policy.authorization import Authorization
from headgate.net.authority import own_authority
from headgate.net.tasks import spawn
from headgate.pipeline.channels import Channels
from headgate.pipeline.replies import FORBIDDEN, reply_of
from headgate.telemetry.metrics import series_key
from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program
from headgate_engine.link.client import HttpClient
from headgate_engine.link.handler import HandlerBackend
from headgate_engine.link.pool import Pool
from headgate_engine.link.worker import Worker
from headgate_engine.plan.step import CONTINUE_VERDICT, run_step
from headgate_engine.shared.counters import Counter
from headgate_engine.steps.authorization import AuthorizationStep

if TYPE_CHECKING:
    from headgate.backend.mcp.guardrails.chain import Guardrails


class McpHandlers:
    """The MCP backends of one configuration in one worker."""

    def __init__(
        self,
        worker: Worker,
        gateway: Gateway,
        pool_of: Callable[[Endpoint], Pool],
        relay: Relay,
        previous: McpHandlers | None,
    ) -> None:
        self._worker = worker
        self._ttl_s = gateway.process.mcp_session_ttl_ms / 1000
        self._pool_of = pool_of
        self._relay = relay
        self._previous = previous
        self.program: Callable[[str, str], Program] | None = None
        self.channels: Channels | None = None
        self._backends: dict[str, McpBackend] = {}
        self._handlers: dict[str, HandlerBackend] = {}
        self._fronts: dict[str, Front] = {}
        self.services: dict[str, StdioService | FederationService] = {}

    def get(self, backend: McpBackend) -> HandlerBackend:
        """Return the handler of a backend."""
        if self._backends.setdefault(backend.key, backend) != backend:
            # Routes may give one backend rules and policy servers of their own.
            backend = replace(backend, key=f"{backend.key}/{digest(backend.rules, backend.guardrails)}")
        handler = self._handlers.get(backend.key)
        if handler is None:
            front = self._front(backend)
            handler = HandlerBackend(self._worker, backend.name, front.handle)
            self._handlers[backend.key] = handler
            self._fronts[backend.targets[0].key if backend.plain else backend.key] = front
        return handler

    def _front(self, backend: McpBackend) -> Front:
        if not backend.plain:
            return Front(self._federation(backend), None, self._counter(backend.name))
        target = backend.targets[0]
        if isinstance(target, StdioTarget):
            service = self.services.get(target.key)
            if service is None and self._previous is not None:
                service = self._previous.services.get(target.key)
            if not isinstance(service, StdioService):
                sessions = Sessions(self._worker.index, self._ttl_s, self._relay.ids)
                service = StdioService(target, sessions, self._relay)
            self.services[target.key] = service
            return Front(service, target.name, self._counter(target.name))
        client = HttpClient(self._pool_of(target.endpoint), own_authority(target.endpoint))
        return Front(HttpService(target, client), target.name, self._counter(target.name))

    def _federation(self, backend: McpBackend) -> FederationService:
        """Return the service of several targets, the running one when the backend has not changed."""
        found = self.services.get(backend.key)
        if found is None and self._previous is not None:
            found = self._previous.services.get(backend.key)
        for target in backend.targets:
            if not isinstance(target, StdioTarget):
                self._pool_of(target.endpoint)  # the service that goes on uses it
        if not isinstance(found, FederationService):
            local = any(isinstance(target, StdioTarget) for target in backend.targets)
            found = FederationService(
                backend.key,
                {target.name: self._link(target) for target in backend.targets},
                Sessions(self._worker.index, self._ttl_s, self._relay.ids),
                self._relay,
                Manner(
                    prefixed=backend.prefixed, bare=backend.bare, tolerant=backend.failure_mode == "failOpen"
                ),
                None if local else self._relay.ids.sealer(f"mcp links {backend.name}"),
            )
        # Sessions go on with the rules and policy servers of the newest configuration.
        # Where policy servers are asked no message passes unread.
        open_to_all = everything if backend.guardrails else None
        found.requests.guard = open_to_all if backend.rules is None else self._guard(backend.rules)
        found.requests.guardrails = self._guardrails(backend)
        self.services[backend.key] = found
        return found

    def _guardrails(self, backend: McpBackend) -> Guardrails | None:
        if not backend.guardrails:
            return None
        from headgate.pipeline.guardrails import compile_guardrails  # protobuf and gRPC: 8 MB

        assert self.channels is not None
        assert self.program is not None
        return compile_guardrails(backend.guardrails, self.channels, self.program, self._worker.segment)

    def _guard(self, rules: Authorization) -> Guard:
        """Return what tells whether there is a tool, prompt, resource or task for whom."""
        assert self.program is not None
        program = self.program
        deny, require, allow = (
            [program(text, "mcp") for text in texts] for texts in (rules.deny, rules.require, rules.allow)
        )
        step = AuthorizationStep(deny, require, allow, reply_of(FORBIDDEN))

        def permits(call: Call, kind: str, target: str, name: str) -> bool:
            context: RequestContext | None = call.context
            if context is None:
                return False
            item = {"target": target, "name": name}
            context.dynamic = {**(context.dynamic or {}), "mcp": {kind: item}}
            return run_step(step, context) == CONTINUE_VERDICT

        return permits

    def _link(self, target: McpTarget) -> LinkFactory:
        if isinstance(target, StdioTarget):
            return lambda _state: StdioLink(target)
        client = HttpClient(self._pool_of(target.endpoint), own_authority(target.endpoint))
        return lambda state: HttpLink(target, client, state)

    def _counter(self, server: str) -> Callable[[str], None]:
        counters: dict[str, Counter] = {}

        def count(method: str) -> None:
            # Methods a client makes up are counted as one.
            known = method if method in METHODS else "other"
            counter = counters.get(known)
            if counter is None:
                key = series_key("gw_mcp_requests_total", {"method": known, "server": server})
                counter = counters[known] = Counter(self._worker.segment, key)
            counter.add()

        return count

    def relayed(self, key: str) -> Callable[[Call], Awaitable[None]] | None:
        """Return what answers a relayed request for a target, None when it is not configured any more."""
        front = self._fronts.get(key)
        return None if front is None else front.handle

    def close_unused(self, current: McpHandlers) -> None:
        """End the sessions of targets that `current` has no more."""
        self._previous = None
        for key, service in self.services.items():
            if current.services.get(key) is not service:
                spawn("mcp close", service.sessions.aclose())
        current._previous = None

    async def aclose(self) -> None:
        """End every session."""
        for service in self.services.values():
            await service.sessions.aclose()


def everything(_call: Call, _kind: str, _target: str, _name: str) -> bool:
    """Say that there is everything for everybody."""
    return True
