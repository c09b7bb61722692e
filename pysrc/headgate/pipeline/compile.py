"""IR to plans: builds, beside whatever runs, everything a configuration needs, and swaps it in at once.

State that outlives a configuration (pools, MCP sessions, rate-limit buckets) is keyed by identity in the IR and carried
over while its key stays; the rest is built anew.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from headgate.backend.contract import Call
from headgate.backend.llm import copilot
from headgate.backend.mcp.relay import Relay
from headgate.ir.backend import Backend, HostBackend, MissingBackend, RouteBackend, ServiceBackend, UiBackend
from headgate.ir.bind import Bind
from headgate.ir.endpoint import Endpoint
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_ROUTE_POLICIES, RoutePolicies
from headgate.ir.policy.retry import Retry
from headgate.ir.route import Route
from headgate.net.authority import own_authority, rewritten_authority
from headgate.net.dial import Dialer
from headgate.net.dns import Resolver
from headgate.net.tls import SniSelector
from headgate.pipeline import steps
from headgate.pipeline.channels import Channels
from headgate.pipeline.keys import KeyStores
from headgate.pipeline.prices import price_list, tags_of
from headgate.pipeline.proxies import ways
from headgate.pipeline.replies import Row, engine_replies, reply_of
from headgate.policy.cloud.store import CredentialStore
from headgate.policy.environment import Environment
from headgate.policy.health import compile_health
from headgate.policy.retry import compile_retry
from headgate.telemetry.families import BUCKETS, BY_NAME
from headgate.telemetry.metrics import series_key
from headgate_engine.context.headers import hide_header
from headgate_engine.http1.receiver import Limits
from headgate_engine.link.backend import HOST, InvalidBackend
from headgate_engine.link.client import HttpClient
from headgate_engine.link.endpoints import Endpoint as EndpointState
from headgate_engine.link.endpoints import EndpointSet
from headgate_engine.link.pool import Pool
from headgate_engine.link.protocols import CLIENTS, HTTP1
from headgate_engine.link.worker import Worker
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.fields import LogFields
from headgate_engine.log.records import RecordFormat
from headgate_engine.plan.plans import BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.route.table import HostTable, RouteRule, RouteTable
from headgate_engine.shared.histogram import Histogram

if TYPE_CHECKING:
    from headgate.crypto.sealed import Sealer
    from headgate.expr.custom import CustomFunctions
    from headgate.pipeline.llm import LlmCompiler
    from headgate.pipeline.mcp import McpHandlers

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
CONNECT = "gw_upstream_connect_duration_seconds"
# Head limits: the codec's defaults unless the configuration says otherwise.
DEFAULT_MAX_HEADERS = 256


class CompileError(Exception):
    """The configuration is well-formed but cannot run here; `errors` says why, one line each."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = errors


class Pools:
    """Connection pools by endpoint key; those that a new configuration still names are taken over."""

    def __init__(self, worker: Worker, gateway: Gateway, previous: Pools | None) -> None:
        self._worker = worker
        self._settings = gateway.process.upstream
        self._resolver = Resolver(ipv6=gateway.process.ipv6)
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[str, Pool] = {}

    def get(self, endpoint: Endpoint) -> Pool:
        """Return the pool of an endpoint, the running one where there is one."""
        pool = self.by_key.get(endpoint.key)
        if pool is None:
            pool = self._previous.get(endpoint.key) or self._open(endpoint)
            self.by_key[endpoint.key] = pool
        return pool

    def _open(self, endpoint: Endpoint) -> Pool:
        dialer = Dialer(endpoint, self._settings, self._resolver, partial(ways, self._worker))
        pool = Pool(
            self._worker,
            endpoint.key,
            endpoint.address.encode(),
            dialer.connect,
            CLIENTS[HTTP1](self._worker),
            idle_timeout=self._settings.pool_idle_timeout_ms / 1000,
            max_idle=-1 if self._settings.pool_max_idle is None else self._settings.pool_max_idle,
            max_waiting=self._settings.pool_max_waiting,
        )
        labels = {"transport": "plaintext" if endpoint.tls is None else "tls"}
        meter = Histogram(self._worker.segment, series_key(CONNECT, labels), BUCKETS[BY_NAME[CONNECT].buckets])
        pool.connect_meter = lambda taken_ns: meter.observe(taken_ns / NS_PER_S)
        return pool

    def close_unused(self, current: Pools) -> None:
        """Close what `current` did not take over."""
        current._previous = {}
        for key, pool in self.by_key.items():
            if current.by_key.get(key) is not pool:
                pool.close()


class Endpoints:
    """Members of backends by owner and key; a reload goes on with those that did not change, and their calls."""

    def __init__(self, worker: Worker, previous: Endpoints | None) -> None:
        self._worker = worker
        self._previous = {} if previous is None else previous.by_key
        self.by_key: dict[tuple[str, str, str, int], EndpointState] = {}

    def get(self, owner: str, key: str, place: Endpoint, pool: Pool, capacity: int) -> EndpointState:
        """Return the member, the running one where there is one."""
        identity = (owner, key, place.key, capacity)
        found = self.by_key.get(identity) or self._previous.get(identity)
        if found is None:
            worker = self._worker
            address = place.address.encode()
            found = EndpointState(worker.segment, owner, key, address, pool, capacity=capacity, worker=worker.index)
        found.pool = pool
        self.by_key[identity] = found
        return found

    def reset(self) -> None:
        """Begin at nothing, whatever a worker before this one left behind."""
        for member in self.by_key.values():
            member.reset_pending()

    def forget_previous(self) -> None:
        """Let go of members that no backend names any more."""
        self._previous = {}


class Running:
    """One compiled configuration of one worker: `binds` by key, ready to be swapped in by activate()."""

    def __init__(
        self, worker: Worker, gateway: Gateway, generation: int, relay: Relay, previous: Running | None
    ) -> None:
        self.worker = worker
        self.gateway = gateway
        self.generation = generation
        self._previous = previous
        self.folder: str = relay.folder
        self.pools: Pools = Pools(worker, gateway, None if previous is None else previous.pools)
        self._relay = relay
        # Made where a backend wants it: a gateway without MCP loads none of it.
        self._mcp: McpHandlers | None = None
        self.environment: Environment | None = None
        self.channels: Channels = Channels(worker, gateway, None if previous is None else previous.channels)
        self.keys: KeyStores = KeyStores(worker, self.pools.get, None if previous is None else previous.keys)
        earlier = None if previous is None else previous.credentials
        self.credentials: CredentialStore = CredentialStore(worker.spawn, earlier)
        self.endpoints: Endpoints = Endpoints(worker, None if previous is None else previous.endpoints)
        self.binds: dict[str, BindPlan] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    @property
    def mcp(self) -> McpHandlers:
        """The handlers of MCP backends, which go on with the sessions of the configuration before."""
        if self._mcp is None:
            from headgate.pipeline.mcp import McpHandlers

            earlier = None if self._previous is None else self._previous._mcp
            self._mcp = McpHandlers(self.worker, self.gateway, self.pools.get, self._relay, earlier)
            self._mcp.channels = self.channels
            if self.environment is not None:
                self._mcp.environment = self.environment
        return self._mcp

    def relayed(self, key: str) -> Callable[[Call], Awaitable[None]] | None:
        """Return who answers a request that another worker passes on; None where nobody does."""
        return None if self._mcp is None else self._mcp.relayed(key)

    def sealer(self, purpose: str) -> Sealer:
        """Return what seals texts for clients with the key of this process."""
        return self._relay.ids.sealer(purpose)

    def ssl_context(self, bind_key: str) -> ssl.SSLContext | None:
        """Return what a port starts TLS handshakes with, None for plain HTTP."""
        return self._contexts.get(bind_key)

    def build(self) -> None:
        """Compile every port; raises CompileError with all faults."""
        errors: list[str] = []
        compiler = Compiler(self)
        for bind in self.gateway.binds:
            try:
                self.binds[bind.key] = compiler.bind(bind)
                if bind.tls:
                    self._contexts[bind.key] = SniSelector(bind.listeners).accept_context()
            except (ValueError, ssl.SSLError, OSError) as error:
                errors.append(f"{bind.key}: {error}")
        if errors:
            raise CompileError(errors)

    async def prepare(self) -> None:
        """Do what must be awaited before activation. Nothing today: key sets and documents will come here."""

    def activate(self) -> None:
        """Swap the plans in; requests in flight keep the ones they started with."""
        self.worker.set_replies(engine_replies())
        for key, plan in self.binds.items():
            self.worker.set_bind(key, plan)
        previous = self._previous
        self._previous = None
        self.endpoints.forget_previous()
        if previous is None:
            self.endpoints.reset()
        else:
            for key in previous.binds.keys() - self.binds.keys():
                self.worker.drop_bind(key)
            previous.pools.close_unused(self.pools)
            if previous._mcp is not None:
                previous._mcp.close_unused(self.mcp)
            previous.channels.close_unused(self.channels)
            previous.keys.close_unused(self.keys)
            previous.credentials.close_unused(self.credentials)

    def begin_drain(self) -> None:
        """End what would last as long as its clients."""
        if self._mcp is not None:
            self._mcp.begin_drain()

    async def aclose(self) -> None:
        """End sessions and child processes at shutdown."""
        self.keys.close()
        self.credentials.close()
        for pool in self.pools.by_key.values():
            pool.close()
        if self._mcp is not None:
            await self._mcp.aclose()
        self.channels.close()


def _functions(text: str) -> CustomFunctions:
    if not text:
        return {}
    from headgate.expr.custom import parse_functions  # see headgate.expr.faults

    return parse_functions(text)


class Compiler:
    """Turns the nouns of the IR into engine plans."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._gateway = running.gateway
        self._worker = running.worker
        limit = running.gateway.frontend.max_buffer_bytes
        worker = running.worker
        for name in running.gateway.process.sensitive_headers:
            hide_header(name)
        functions = _functions(running.gateway.process.custom_functions)
        self._environment = Environment(
            worker.segment, limit, running.keys.get, self._client, worker.spawn, functions, running.sealer,
            running.credentials,
        )  # fmt: skip
        running.credentials.calls.client = self._client

        running.environment = self._environment
        catalog = running.gateway.process.prices
        self._prices = price_list(catalog, worker.segment)
        self._tags = tags_of(catalog, copilot.PROVIDER)

    def _client(self, endpoint: Endpoint) -> HttpClient:
        return HttpClient(self._running.pools.get(endpoint), own_authority(endpoint))

    def bind(self, bind: Bind) -> BindPlan:
        """Return the plan of one port."""
        frontend = self._gateway.frontend
        plan = BindPlan(bind.key, Limits(max_headers=frontend.http1_max_headers or DEFAULT_MAX_HEADERS))
        plan.secure = bind.tls
        plan.idle_timeout_ns = frontend.http1_idle_timeout_ms * NS_PER_MS
        plan.max_duration_ns = (frontend.max_connection_duration_ms or 0) * NS_PER_MS
        forwarding = self._gateway.process.forwarding
        plan.forwarded = int(forwarding.x_forwarded) | int(forwarding.forwarded) << 1
        plan.trusted_hops = forwarding.trusted_hops
        plan.generation = self._running.generation
        plan.access_log = self._access_log(self._gateway.process.log_format)
        if self._gateway.process.request_log is not None:
            log = self._gateway.frontend.access_log
            plan.records = RecordFormat(self._access_log("json", log.database_add), log.database_full)
        labels = self._gateway.process.metric_labels
        if labels:
            plan.metric_labels = tuple((name, self._environment.program(text, "log")) for name, text in labels)
        listeners = [(listener, self.listener(listener)) for listener in bind.listeners]
        plan.listeners = HostTable([(listener.hostname or "*", compiled) for listener, compiled in listeners])
        if len(listeners) == 1 and listeners[0][0].hostname is None:
            plan.only = listeners[0][1]
        return plan

    def _access_log(self, form: str, more: tuple[tuple[str, str], ...] = ()) -> AccessLogFormat:
        log, program = self._gateway.frontend.access_log, self._environment.program
        fields = None
        if log.add or more or log.filter is not None:
            fields = LogFields(
                None if log.filter is None else program(log.filter, "log"),
                [(key, program(text, "log")) for key, text in (*log.add, *more)],
            )
        return AccessLogFormat(format=form, remove=log.remove, fields=fields)

    def listener(self, listener: Listener) -> ListenerPlan:
        """Return the plan of one listener with its route table."""
        rules = []
        for route in listener.routes:
            plan = self.route(route)
            for match in route.matches:
                rules.append(
                    RouteRule(
                        hostnames=route.hostnames,
                        path_kind=match.path.kind,
                        path=match.path.value,
                        method=match.method,
                        headers=tuple((item.name, item.kind, item.value) for item in match.headers),
                        query=tuple((item.name, item.kind, item.value) for item in match.query),
                        target=plan,
                        order=route.order,
                    )
                )
        found = ListenerPlan(
            listener.name,
            listener.gateway_name,
            listener.gateway_namespace,
            RouteTable(rules, scheme="https" if listener.tls is not None else "http"),
        )
        found.origin = listener
        policies = listener.policies
        found.request_steps = tuple(steps.gateway_request_steps(policies, self._environment))
        found.response_transforms = steps.response_transforms(policies, self._environment)
        found.hold = steps.response_hold(policies, self._environment)
        return found

    def route(self, route: Route) -> RoutePlan:
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
        plan.request_steps = steps.route_request_steps(route.policies, self._environment)
        plan.response_steps = steps.route_response_steps(route.policies)
        plan.response_transforms = steps.response_transforms(route.policies, self._environment)
        plan.hold = steps.response_hold(route.policies, self._environment)
        if route.policies.retry is not None:
            plan.retry = compile_retry(route.policies.retry, self._environment)
        rewrite = route.policies.rewrite
        plan.keep_authority = rewrite is not None and rewrite.authority is not None and not rewrite.authority.auto
        timeout = route.policies.timeout
        if timeout is not None:
            plan.request_timeout_ns = (timeout.request_timeout_ms or 0) * NS_PER_MS
            plan.backend_timeout_ns = (timeout.backend_request_timeout_ms or 0) * NS_PER_MS
        return plan

    def _endpoints(
        self, owner: str, places: list[tuple[str, Endpoint, int]], entry: RouteBackend, retry: Retry | None
    ) -> EndpointSet:
        """Return the endpoints of a backend; what is known of each is kept by `owner` and its own key."""
        running = self._running
        members = [
            running.endpoints.get(owner, key, place, running.pools.get(place), capacity)
            for key, place, capacity in places
        ]
        policies = entry.policies
        health = None if policies.health is None else compile_health(policies.health, retry, self._environment)
        affinity = None if policies.affinity is None else self._environment.program(policies.affinity, "route")
        return EndpointSet(members, health, affinity)

    def _llm(self) -> LlmCompiler:
        # Translation is not loaded where no LLM provider is configured.
        from headgate.pipeline.llm import LlmCompiler

        running = self._running

        def member(owner: str, key: str, place: Endpoint) -> EndpointState:
            return running.endpoints.get(owner, key, place, running.pools.get(place), 1)

        keeps = self._gateway.process.request_log is not None and self._gateway.frontend.access_log.database_full
        return LlmCompiler(running.pools.get, member, self._environment, self._prices, self._tags, keeps=keeps)

    def backend(self, entry: RouteBackend, policies: RoutePolicies = NO_ROUTE_POLICIES) -> BackendPlan:
        """Return the plan of one weighted choice of a route with `policies`."""
        retry, rewrite = policies.retry, policies.rewrite
        automatic = rewrite is not None and rewrite.authority is not None and rewrite.authority.auto
        backend = entry.backend
        match backend:
            case HostBackend():
                plan = BackendPlan(backend.name, "http", HOST)
                plan.pool = self._running.pools.get(backend.endpoint)
                plan.authority = rewritten_authority(backend.endpoint)
                if entry.policies.health is not None or entry.policies.affinity is not None:
                    place = (backend.endpoint.address, backend.endpoint, 1)
                    plan.endpoints = self._endpoints(f"host/{backend.name}", [place], entry, retry)
            case ServiceBackend():
                plan = BackendPlan(backend.name, "http", HOST)
                places = [(one.key, one.endpoint, one.capacity) for one in backend.endpoints]
                plan.endpoints = self._endpoints(backend.owner, places, entry, retry)
                if automatic:
                    plan.authority = backend.hostname.encode("idna")
            case LlmRouter():
                plan = BackendPlan(backend.name, "llm", self._llm().router(backend))
                plan.max_body = backend.max_body_bytes
            case AiBackend():
                plan = BackendPlan(backend.name, "llm", self._llm().backend(backend, retry))
                plan.max_body = self._gateway.frontend.max_buffer_bytes
            case McpBackend():
                plan = BackendPlan(backend.name, "mcp", self._running.mcp.get(backend))
                plan.max_body = self._gateway.frontend.max_buffer_bytes
            case UiBackend():
                plan = BackendPlan(backend.name, "http", HOST)
                path = backend.socket_path(self._running.folder)
                plan.pool = self._running.pools.get(Endpoint(key=f"ui/{backend.access}", unix_path=path))
            case MissingBackend():
                refusal = InvalidBackend(reply_of(Row(500, backend.reason, "Internal")))
                plan = BackendPlan(backend.name, "http", refusal)
        own = steps.at_host(entry.policies, host) if (host := _host(backend)) else entry.policies
        plan.origin = entry
        plan.request_steps = steps.backend_request_steps(own, self._environment)
        plan.final_steps = steps.backend_final_steps(own, self._environment)
        plan.response_steps = steps.backend_response_steps(entry.policies)
        plan.response_transforms = steps.response_transforms(entry.policies, self._environment)
        plan.hold = steps.response_hold(entry.policies, self._environment)
        plan.request_timeout_ns = (entry.policies.request_timeout_ms or 0) * NS_PER_MS
        return plan


def _host(backend: Backend) -> str:
    match backend:
        case HostBackend():
            return backend.endpoint.host
        case ServiceBackend():
            return backend.hostname
    return ""


def compile_gateway(
    gateway: Gateway, previous: Running | None, *, worker: Worker, generation: int, relay: Relay
) -> Running:
    """Return the compiled configuration, not yet active; raises CompileError."""
    running = Running(worker, gateway, generation, relay, previous)
    running.build()
    return running
