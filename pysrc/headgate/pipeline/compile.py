"""Compiles the IR to plans: builds everything that a configuration needs beside the running one, then swaps it in at
once.

The work is a generator, so that a worker can do it in slices beside its traffic. State that outlives a configuration
(pools, MCP sessions, rate-limit buckets) is keyed by identity in the IR and carried over while its key stays. Plans of
routes are carried over as well, where the route is the same object and the settings of the process are equal. The rest
is built anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import is_
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from headgate.document.hunks import Hunk, hunks
from headgate.document.lazy_dataclass import replace
from headgate.ir.backend import (
    AgentRuntimeBackend,
    DynamicBackend,
    GroupBackend,
    HostBackend,
    InternalBackend,
    MissingBackend,
    RouteBackend,
    ServiceBackend,
    UiBackend,
    uses_models,
)
from headgate.ir.bind import Bind
from headgate.ir.endpoint import Endpoint
from headgate.ir.frontend import AccessLog
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_ROUTE_POLICIES, RoutePolicies
from headgate.ir.policy.retry import RetryPolicy
from headgate.ir.policy.rewrite import Rewrite
from headgate.ir.route import Route
from headgate.net.authority import rewritten_authority
from headgate.pipeline import phases
from headgate.pipeline.agents import destination_of, host_of, protocol_of
from headgate.pipeline.callers import grpc_of, steps_of_call
from headgate.pipeline.claim_counts import ClaimCounts
from headgate.pipeline.guard_patterns import compile_patterns
from headgate.pipeline.http2_limits import http2_limits
from headgate.pipeline.log_formats import line_format
from headgate.pipeline.prices import price_list, tags_of
from headgate.pipeline.replies import REPLIES, ReplyRow, reply_of
from headgate.pipeline.route_rules import route_rules
from headgate.pipeline.route_tables import route_tables
from headgate.pipeline.running import (
    STEP,
    CompiledListener,
    CompiledRoute,
    Logging,
    RunningConfiguration,
    Steps,
)
from headgate.pipeline.slices import at_once
from headgate.pipeline.steps import at_host, fixed_path, stands_alone
from headgate.pipeline.tcp import connect_mode, gate, proxy_rules, tcp_table
from headgate.pipeline.tcp import protocol_of as protocol_of_bind
from headgate.policy.claims import RouteClaims
from headgate.policy.environment import Environment
from headgate_engine.context.paths import MODES
from headgate_engine.expr.program import Program
from headgate_engine.http1.receiver import ReceiverLimits
from headgate_engine.link.backend import HOST, InvalidBackend
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.endpoints import EndpointState as EndpointState
from headgate_engine.link.inward import INWARD_BACKEND
from headgate_engine.link.pool import Pool
from headgate_engine.link.worker import Worker
from headgate_engine.log.records import RecordFormat
from headgate_engine.plan.plans import BackendPlan, BindPlan, Destination, ListenerPlan, RouteGroup, RoutePlan
from headgate_engine.route.table import HostTable

if TYPE_CHECKING:
    from headgate.backend.mcp.relay import Relay
    from headgate.expr.custom import CustomFunctions
    from headgate.pipeline.llm import LlmCompiler

NS_PER_MS = 1_000_000
# Head limits: the codec's defaults unless the configuration says otherwise.
DEFAULT_MAX_HEADERS = 256
# plan.plans.RequestIdMode.
REQUEST_ID_MODES: Final = ("off", "generate", "trust")

Programs = Mapping[tuple[str, str], Program]
NO_PROGRAMS: Final[Programs] = MappingProxyType({})


class CompileError(Exception):
    """The configuration is well-formed but cannot run here; `errors` says why, one line each."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


def _functions(text: str) -> CustomFunctions:
    if not text:
        return {}
    from headgate.expr.custom import parsed_functions  # see headgate.expr.faults

    return parsed_functions(text)


class PlanCompiler:
    """Compiles the objects of the IR to engine plans. Plans that `previous` already has are taken over."""

    def __init__(
        self, running: RunningConfiguration, previous: RunningConfiguration | None, programs: Programs
    ) -> None:
        self._running = running
        self._gateway = gateway = running.gateway
        self._worker = worker = running.worker
        same = previous is not None and (gateway.frontend, gateway.process) == (
            previous.gateway.frontend, previous.gateway.process,
        )  # fmt: skip
        self._same_paths = previous is None or (
            gateway.frontend.path_normalization == previous.gateway.frontend.path_normalization
        )
        # Plans of other settings are not taken over, but the rules that lead to them are.
        self._settled = previous if same else None
        self._before: dict[str, CompiledListener] = {} if previous is None else previous.listeners
        self._environment = Environment(
            worker.segment, gateway.frontend.max_buffer_bytes, running.keys.get, running.client, worker.spawn,
            partial(_functions, gateway.process.custom_functions), running.sealer, running.credentials.store,
            max_answer=gateway.frontend.longest_model_response, programs=programs,
            grpc=partial(grpc_of, running.pools), steps_of_call=steps_of_call, shared=running.shared.limiter,
            key_table=running.virtual_keys.table,
        )  # fmt: skip
        running.environment = running.pools.environment = self._environment
        catalog = gateway.process.prices
        if previous is not None and catalog == previous.gateway.process.prices:
            running.prices = previous.prices
        else:
            running.prices = price_list(catalog, worker.segment)
        self._tags: dict[str, list[str]] | None = None
        # The route groups of the listener that is being compiled, by the key of their delegation.
        self._groups: dict[str, RouteGroup] = {}
        if self._settled is not None:
            running.claimed = ClaimCounts(self._settled.claimed)
            self._drop_listeners(self._settled)
        if self._settled is not None:
            logs = {bind.frontend.access_log for bind in gateway.binds if bind.frontend is not None}
            logs.add(gateway.frontend.access_log)
            running.logging = {log: one for log, one in self._settled.logging.items() if log in logs}
            for one in running.logging.values():
                self._environment.wanted.note(one.variables)

    def _drop_listeners(self, before: RunningConfiguration) -> None:
        """Uncount the resources of the plans of removed listeners."""
        keys = {f"{bind.key}/{listener.key}" for bind in self._gateway.binds for listener in bind.listeners}
        for key in before.listeners.keys() - keys:
            for entry in before.listeners[key].entries:
                if entry.claims is not None:
                    self._running.claimed.remove(entry.claims)

    def _logging(self, log: AccessLog) -> Logging:
        """Return how the requests of a port are logged, and with which labels they are counted."""
        known = self._running.logging.get(log)
        if known is not None:
            return known
        process = self._gateway.process
        self._running.logging[log] = logging = Logging()
        self._environment.claims = claims = RouteClaims()
        standard, program = process.standard_attributes, self._environment.program
        logging.access = line_format(log, program, process.log_format, standard if process.standard_everywhere else ())
        if process.request_log is not None:
            stored = line_format(log, program, "json", standard, log.database_add)
            logging.records = RecordFormat(stored, log.database_full)
        if process.metric_labels:
            logging.labels = tuple((name, program(text, "log")) for name, text in process.metric_labels)
        logging.variables = claims.variables
        return logging

    def bind(self, bind: Bind) -> Steps[BindPlan]:
        """Return the plan of one port."""
        frontend = bind.frontend or self._gateway.frontend
        plan = BindPlan(bind.key, ReceiverLimits(max_headers=frontend.http1_max_headers or DEFAULT_MAX_HEADERS))
        plan.http2 = http2_limits(frontend, bind.hbone)
        plan.secure = bind.tls
        plan.protocol = protocol_of_bind(bind)
        plan.keeps_underscores, plan.lower_case = frontend.keeps_underscores, not frontend.keeps_header_case
        plan.path_mode = MODES[frontend.path_normalization]
        plan.request_ids = REQUEST_ID_MODES.index(frontend.request_ids)
        plan.idle_timeout_ns = frontend.http1_idle_timeout_ms * NS_PER_MS
        plan.body_timeout_ns = frontend.stall_timeout_ms * NS_PER_MS
        plan.max_duration_ns = (frontend.max_connection_duration_ms or 0) * NS_PER_MS
        forwarding = self._gateway.process.forwarding
        plan.forwarded = int(forwarding.x_forwarded) | int(forwarding.forwarded) << 1
        plan.trusted_hops = forwarding.trusted_hops
        plan.generation, plan.connect_mode = self._running.generation, connect_mode(bind, frontend)
        plan.admission, plan.proxy_rules = gate(frontend, self._environment), proxy_rules(bind, frontend)
        logging = self._logging(frontend.access_log)
        plan.access_log, plan.records, plan.metric_labels = logging.access, logging.records, logging.labels
        standard = self._gateway.process.standard_attributes if self._gateway.process.standard_everywhere else ()
        plan.tracing, plan.otlp_log = self._running.exporters.plans(frontend, self._environment, standard)
        listeners = []
        for listener in bind.listeners:
            compiled = yield from self.listener(listener, f"{bind.key}/{listener.key}")
            listeners.append((listener, compiled))
        plan.listeners = HostTable([(listener.hostname or "*", compiled) for listener, compiled in listeners])
        if len(listeners) == 1 and listeners[0][0].hostname is None:
            plan.sole_listener = listeners[0][1]
        return plan

    def listener(self, listener: Listener, key: str) -> Steps[ListenerPlan]:
        """Return the plan of one listener with its route table; `key` is its own among all ports."""
        found = self._running.listeners[key] = CompiledListener("https" if listener.tls is not None else "http")
        before = self._before.get(key)
        if before is not None:
            found.groups = dict(before.groups)
        self._groups = found.groups
        yield from self._compiled(found, listener.routes, before)
        found.table = yield from route_tables(found, before)
        self._environment.claims = RouteClaims()
        plan = ListenerPlan(listener.name, listener.gateway_name, listener.gateway_namespace, found.table)
        plan.origin = listener
        if not listener.carries_http:
            plan.tcp = tcp_table(listener, self.backend)
        policies = listener.policies
        plan.request_steps = phases.request_steps("gateway", policies, self._environment)
        phases.set_response(plan, "gateway", policies, self._environment)
        found.plan = plan
        return plan

    def _compiled(
        self, found: CompiledListener, routes: tuple[Route, ...], before: CompiledListener | None
    ) -> Steps[None]:
        """Compile the changed routes of a listener. The others keep their plans."""
        found.listed = routes
        if before is None or self._settled is None:
            changed = [Hunk(0, 0, 0, len(routes))]
        else:
            changed = hunks(before.listed, routes, is_)
            found.entries, found.routes = before.entries.copy(), before.routes.copy()
            found.bound = before.bound.copy()
            yield
        gone: list[CompiledRoute] = []
        stay: set[int] = set()
        for hunk in reversed(changed):
            gone += found.entries[hunk.i1 : hunk.i2]
            made = yield from self._entries(routes[hunk.j1 : hunk.j2], found, before)
            if before is not None:
                for number in range(0, len(made), STEP):
                    stay.update(map(id, made[number : number + STEP]))
                    yield
            found.entries[hunk.i1 : hunk.i2] = made
        for number, entry in enumerate(gone):
            self._forget(found, entry, stays=id(entry) in stay)
            if not number % STEP:
                yield
        if before is not None and before.bound and self._settled is not None:
            yield from self._compile_bound(found, before)

    def _entries(
        self, routes: tuple[Route, ...], found: CompiledListener, before: CompiledListener | None
    ) -> Steps[list[CompiledRoute]]:
        """Compile some routes. Routes that have only moved keep their plans."""
        made = []
        for route in routes:
            earlier = None if before is None else before.routes.get(route.key)
            entry = None
            if earlier is not None and earlier.route is route and earlier.claims is not None:
                entry = earlier if self._settled is not None else None
            if entry is None:
                yield from compile_patterns(route, self._environment)
                entry = self.route(route, earlier)
                if earlier is not None and entry.rules is earlier.rules:
                    found.moved.append(entry)
            made.append(entry)
            self._note(found, entry)
            yield
        return made

    def _forget(self, found: CompiledListener, entry: CompiledRoute, *, stays: bool) -> None:
        """Remove a previous route, which may have moved within the listener."""
        if entry.claims is not None:
            self._running.claimed.remove(entry.claims)
        if not stays and found.routes[entry.route.key] is entry:
            del found.routes[entry.route.key]
            found.bound.pop(entry.route.key, None)

    def _note(self, found: CompiledListener, entry: CompiledRoute) -> None:
        key = entry.route.key
        found.routes[key] = entry
        found.bound.pop(key, None)
        if entry.claims is None:
            found.bound[key] = None
        else:
            self._running.claimed.add(entry.claims)

    def _compile_bound(self, found: CompiledListener, before: CompiledListener) -> Steps[None]:
        """Recompile the routes whose plans use objects of the previous configuration."""
        for number, entry in enumerate(found.entries):
            if entry.claims is None and before.routes.get(entry.route.key) is entry:
                made = self.route(entry.route, entry)
                found.moved.append(made)
                found.entries[number] = made
                self._note(found, made)
                yield
            elif not number % STEP:
                yield

    def take_over(self) -> Steps[None]:
        """Take over the worker resources of plans that are kept."""
        running = self._running
        claimed = running.claimed
        self._environment.wanted.note(frozenset(claimed.variables))
        for number, endpoint in enumerate(list(claimed.endpoints.values())):
            running.pools.get(endpoint)
            if not number % STEP:
                yield
        for number, (owner, key, place, capacity) in enumerate(list(claimed.places)):
            running.endpoints.get(owner, key, place, running.pools.get(place), capacity)
            if not number % STEP:
                yield
        for source in list(claimed.sources):
            running.keys.get(source)
        yield

    def route(self, route: Route, before: CompiledRoute | None = None) -> CompiledRoute:
        """Return a compiled route. If it matches the same requests as `before`, it reuses the rules of that."""
        self._environment.claims = claims = RouteClaims()
        plan = self.plan(route)
        same = before is not None and (before.route.hostnames, before.route.matches) == (route.hostnames, route.matches)
        if before is not None and same and self._same_paths:
            rules = before.rules
        else:
            rules = route_rules(route, plan, self._gateway.frontend)
        return CompiledRoute(route, plan, rules, claims if stands_alone(route) else None)

    def plan(self, route: Route) -> RoutePlan:
        """Return the plan of one route: steps in pipeline order, backends with their weights."""
        backends = tuple(self.backend(entry, route.policies) for entry in route.backends)
        plan = RoutePlan(
            route.name,
            route.namespace,
            route.rule_name or "",
            backends,
            tuple(entry.weight for entry in route.backends),
        )
        plan.origin = route
        policies = route.policies
        plan.protected = policies.protects
        if policies.local_rate_limits and not uses_models(route.backends):
            limits = tuple(limit for limit in policies.local_rate_limits if not limit.tokens)
            policies = replace(policies, local_rate_limits=limits)
        plan.request_steps = phases.request_steps("route", policies, self._environment)
        phases.configure(plan, policies, self._environment)
        phases.set_response(plan, "route", policies, self._environment)
        return plan

    def _endpoints(
        self, owner: str, places: list[tuple[str, Endpoint, int]], entry: RouteBackend, retry: RetryPolicy | None
    ) -> EndpointSet:
        """Return the endpoints of a backend. The state of each is kept under `owner` and the key of the endpoint."""
        members = [self._member(owner, key, place, capacity) for key, place, capacity in places]
        policies = entry.policies
        health = None
        if policies.health is not None:
            from headgate.policy.health import compile_health  # as every policy, with the first one

            health = compile_health(policies.health, retry, self._environment)
        affinity = None if policies.affinity is None else self._environment.program(policies.affinity, "backend")
        return EndpointSet(members, health, affinity)

    def _member(self, owner: str, key: str, place: Endpoint, capacity: int = 1) -> EndpointState:
        """Return the state of an endpoint."""
        for one in (place, *self._tunneled(place)):
            self._environment.claims.places.append((owner, key, one, capacity))
            found = self._running.endpoints.get(owner, key, one, self._running.pools.get(one), capacity)
        return found

    def _tunneled(self, place: Endpoint) -> tuple[Endpoint, ...]:
        """Return the same place as clients reach it through tunnels, if there are any."""
        wanted = self._gateway.frontend.connect == "route" and not place.tcp
        return (replace(place, tcp=True, infers=False, http2=None),) if wanted else ()

    def _destination(self, entry: RouteBackend, rewrite: Rewrite | None) -> Destination:
        limit = self._gateway.frontend.max_buffer_bytes
        return destination_of(entry, rewrite, limit, lambda key, place: self._running.dynamic.picked(key, place))

    def _pool(self, endpoint: Endpoint) -> Pool:
        self._environment.claims.pools[endpoint.pool_key] = endpoint
        return self._running.pools.get(endpoint)

    def _llm(self) -> LlmCompiler:
        # Translation is not loaded where no LLM provider is configured.
        from headgate.backend.llm import copilot
        from headgate.pipeline.llm import LlmCompiler

        if self._tags is None:
            self._tags = tags_of(self._gateway.process.prices, copilot.PROVIDER)
        log_payload = self._gateway.process.request_log is not None and self._gateway.frontend.access_log.database_full
        return LlmCompiler(
            self._running.pools.get, self._member, self._environment, self._running.prices, self._tags,
            log_payload=log_payload,
        )  # fmt: skip

    def backend(self, entry: RouteBackend, policies: RoutePolicies = NO_ROUTE_POLICIES) -> BackendPlan:
        """Return the plan of one weighted choice of a route with `policies`."""
        retry, rewrite = policies.retry, policies.rewrite
        automatic = rewrite is not None and rewrite.authority is not None and rewrite.authority.auto
        backend = entry.backend
        match backend:
            case HostBackend() | AgentRuntimeBackend():
                plan = BackendPlan(backend.name, protocol_of(entry), self._destination(entry, rewrite))
                plan.pool = self._pool(backend.endpoint)
                for tunneled in self._tunneled(backend.endpoint):
                    plan.tcp_pool = self._pool(tunneled)
                plan.authority = rewritten_authority(backend.endpoint)
                if entry.policies.health is not None or entry.policies.affinity is not None:
                    place = (backend.endpoint.address, backend.endpoint, 1)
                    plan.endpoints = self._endpoints(f"host/{backend.name}", [place], entry, retry)
            case ServiceBackend():
                plan = BackendPlan(backend.name, protocol_of(entry), self._destination(entry, rewrite))
                places = [(one.key, one.endpoint, one.capacity) for one in backend.endpoints]
                plan.endpoints = self._endpoints(backend.owner, places, entry, retry)
                if automatic:
                    plan.authority = backend.hostname.encode("idna")
            case LlmRouter():
                plan = BackendPlan(backend.name, "llm", self._llm().router(backend))
                plan.max_body = self._gateway.frontend.max_buffer_bytes
            case AiBackend():
                plan = BackendPlan(backend.name, "llm", self._llm().backend(backend, retry))
                plan.max_body = self._gateway.frontend.max_buffer_bytes
            case McpBackend():
                plan = BackendPlan(backend.name, "mcp", self._running.mcp.get(backend))
                plan.max_body = self._gateway.frontend.max_buffer_bytes
            case UiBackend():
                plan = BackendPlan(backend.name, "http", HOST)
                path = backend.socket_path(self._running.folder)
                plan.pool = self._pool(Endpoint(key=f"ui/{backend.access}", unix_path=path))
            case DynamicBackend():
                plan = self._running.dynamic.plan(backend, self._environment)
            case InternalBackend():
                plan = BackendPlan(backend.name, "http", INWARD_BACKEND)
                plan.pool = self._pool(backend.endpoint)
            case GroupBackend():
                plan = BackendPlan(backend.name, "http", InvalidBackend(reply_of(REPLIES["route_not_found"])))
                plan.group = self._groups.setdefault(backend.key, RouteGroup(backend.name))
            case MissingBackend():
                refusal = InvalidBackend(reply_of(ReplyRow(500, backend.reason, "Internal")))
                plan = BackendPlan(backend.name, "http", refusal)
        own = at_host(entry.policies, host) if (host := host_of(backend)) else entry.policies
        plan.origin = entry
        plan.request_steps = phases.request_steps("backend", own, self._environment)
        plan.final_steps = (
            *phases.request_steps("departure", own, self._environment), *fixed_path(backend, self._environment),
        )  # fmt: skip
        phases.set_response(plan, "backend", entry.policies, self._environment)
        plan.request_timeout_ns = (entry.policies.request_timeout_ms or 0) * NS_PER_MS
        return plan


def compile_gateway(
    gateway: Gateway, previous: RunningConfiguration | None, *, worker: Worker, generation: int, relay: Relay
) -> RunningConfiguration:
    """Return the compiled configuration, not yet active; raises CompileError."""
    return at_once(compile_steps(gateway, previous, worker=worker, generation=generation, relay=relay))


def compile_steps(
    gateway: Gateway,
    previous: RunningConfiguration | None,
    *,
    worker: Worker,
    generation: int,
    relay: Relay,
    programs: Programs = NO_PROGRAMS,
) -> Steps[RunningConfiguration]:
    """Compile as compile_gateway() does, a few hundred microseconds between two yields.

    `programs`: those of expressions that are there already; others are compiled here. Raises CompileError.
    """
    running = RunningConfiguration(worker, gateway, generation, relay, previous)
    yield from running.virtual_keys.compile()
    compiler = PlanCompiler(running, previous, programs)
    yield
    errors: list[str] = []
    for bind in gateway.binds:
        try:
            running.binds[bind.key] = yield from compiler.bind(bind)
            if bind.tls:
                yield from running.name_certificates(bind)
        except (ValueError, OSError) as error:  # a TlsError is a ValueError
            errors.append(f"{bind.key}: {error}")
        yield
    if errors:
        raise CompileError(errors)
    yield from compiler.take_over()
    return running
