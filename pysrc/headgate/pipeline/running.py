"""The running state of a worker: the plans of one configuration with their resources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Any, Final, TypeVar

from headgate.backend.contract import BackendCall
from headgate.document.hunks import hunks
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.ir.bind import Bind
from headgate.ir.frontend import AccessLog
from headgate.ir.gateway import Gateway
from headgate.ir.listener import Listener
from headgate.ir.route import Route
from headgate.net.dns import Resolver
from headgate.net.tls import SniSelector
from headgate.pipeline.claim_counts import ClaimCounts
from headgate.pipeline.cloud import CloudCredentials
from headgate.pipeline.exporters import Exporters
from headgate.pipeline.keys import KeyHolder, KeyStores
from headgate.pipeline.pools import Endpoints, Pools, client_of
from headgate.pipeline.replies import engine_replies
from headgate.pipeline.shared_state import Shared
from headgate.policy.claims import RouteClaims
from headgate.policy.environment import Environment
from headgate_engine.context.headers import hide_headers
from headgate_engine.expr.program import Program
from headgate_engine.link.client import HttpClient
from headgate_engine.link.worker import Worker
from headgate_engine.llm.prices import PriceList
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.records import RecordFormat
from headgate_engine.plan.plans import BindPlan, ListenerPlan, RouteGroup, RoutePlan
from headgate_engine.route.table import RouteRule, RouteTable

if TYPE_CHECKING:
    from headgate.backend.mcp.relay import Relay
    from headgate.crypto.sealed import Sealer
    from headgate.pipeline.destinations import DynamicPools
    from headgate.pipeline.mcp import McpHandlers

Result = TypeVar("Result")
# Yields None between two pieces, or a call that a thread makes (headgate.pipeline.slices.Work).
Steps = Generator[Any, None, Result]
# Routes that are gone over between two yields: some tens of microseconds.
STEP: Final = 256
# Routes that are freed between two yields.
FREED: Final = 16


@dataclass(slots=True)
class Logging:
    """The access log settings and metric labels of ports. `variables`: the variables that they read."""

    access: AccessLogFormat | None = None
    records: RecordFormat | None = None
    labels: tuple[tuple[str, Program], ...] | None = None
    variables: frozenset[str] = frozenset()


class CompiledRoute:
    """A route of a listener: what it was made from, its plan, and its rules in the table of the listener.

    `claims`: the worker resources of the plan. None means that the plan uses objects of its configuration and is
    recompiled with each one.
    """

    __slots__ = ("claims", "plan", "route", "rules")

    def __init__(self, route: Route, plan: RoutePlan, rules: tuple[RouteRule, ...], claims: RouteClaims | None) -> None:
        self.route = route
        self.plan = plan
        self.rules = rules
        self.claims = claims


class CompiledListener:
    """A listener with its compiled routes, of which `listed` is what they were made from. `bound`: the keys of those
    that hold something of their configuration. `moved`: those whose rules stand in the table of the running
    configuration and lead to the plan that they have there, until they are turned to the new one.

    `parts`: its routes by the delegation that leads to them, its own by ""; `tables`: of each of these; `groups`: what
    plans of routes refer to in the place of such a table, which they get when the configuration is activated.
    """

    __slots__ = (
        "bound", "entries", "groups", "listed", "moved", "parts", "plan", "routes", "scheme", "table", "tables",
    )  # fmt: skip

    def __init__(self, scheme: str) -> None:
        self.scheme = scheme
        self.listed: tuple[Route, ...] = ()
        self.entries: list[CompiledRoute] = []
        self.routes: dict[str, CompiledRoute] = {}
        self.bound: dict[str, None] = {}
        self.moved: list[CompiledRoute] = []
        self.table: RouteTable | None = None
        self.plan: ListenerPlan | None = None
        self.parts: dict[str, list[CompiledRoute]] = {"": []}
        self.tables: dict[str, RouteTable] = {}
        self.groups: dict[str, RouteGroup] = {}

    def by_parent(self) -> Generator[None, None, dict[str, list[CompiledRoute]]]:
        """Return the routes by the delegation that leads to them."""
        found: dict[str, list[CompiledRoute]] = {"": []}
        for number in range(0, len(self.entries), STEP):
            for entry in self.entries[number : number + STEP]:
                parent = entry.route.parent
                if parent in found:
                    found[parent].append(entry)
                else:
                    found[parent] = [entry]
            yield
        return found

    @staticmethod
    def rules(entries: list[CompiledRoute]) -> Generator[None, None, list[RouteRule]]:
        """Return the rules of routes in their order."""
        found: list[RouteRule] = []
        for number in range(0, len(entries), STEP):
            for entry in entries[number : number + STEP]:
                found += entry.rules
            yield
        return found

    def turn_groups(self) -> None:
        """Give the groups their tables. Those that no route delegates to any more are forgotten."""
        if self.groups.keys() - self.tables.keys():
            plans = (entry.plan for entry in self.entries if entry.plan.delegates)
            wanted = {id(choice.group) for plan in plans for choice in plan.backends}
            self.groups = {key: group for key, group in self.groups.items() if id(group) in wanted}
        for key, group in self.groups.items():
            group.routes = self.tables.get(key)
            group.protected = any(_is_protected(entry.plan) for entry in self.parts.get(key, ()))


def _is_protected(plan: RoutePlan) -> bool:
    groups = (entry.group for entry in plan.backends) if plan.delegates else ()
    return plan.protected or any(group is not None and group.protected for group in groups)


class RunningConfiguration:
    """One compiled configuration of one worker: `binds` by key, ready to be swapped in by activate()."""

    def __init__(
        self, worker: Worker, gateway: Gateway, generation: int, relay: Relay, previous: RunningConfiguration | None
    ) -> None:
        self.worker = worker
        self.gateway = gateway
        self.generation = generation
        self._previous = previous
        self.folder: str = relay.folder
        # What it knows stays while its settings do, and with it the thread that asks name servers.
        self._keeps_names = previous is not None and previous.gateway.process.dns == gateway.process.dns
        self.resolver: Resolver = (
            previous.resolver if previous is not None and self._keeps_names else Resolver(gateway.process.dns)
        )
        self.pools: Pools = Pools(worker, gateway, self.resolver, None if previous is None else previous.pools)
        # Made where a route has a dynamic backend.
        self._dynamic: DynamicPools | None = None
        self._relay = relay
        # Seals texts for clients with the key of this process. What is kept of it must not keep this configuration.
        self.sealer: Callable[[str], Sealer] = relay.ids.sealer
        # Made where a backend wants it: a gateway without MCP loads none of it.
        self._mcp: McpHandlers | None = None
        self.environment: Environment | None = None
        self.keys: KeyStores = KeyStores(worker, self.pools, None if previous is None else previous.keys)
        self.client: Callable[..., HttpClient] = partial(client_of, self.pools)
        self.credentials: CloudCredentials = CloudCredentials(
            worker, self.client, None if previous is None else previous.credentials
        )
        self.exporters: Exporters = Exporters(worker, None if previous is None else previous.exporters)
        self.virtual_keys: KeyHolder = KeyHolder(worker, gateway, None if previous is None else previous.virtual_keys)
        self.shared: Shared = Shared(worker, gateway, None if previous is None else previous.shared)
        self.endpoints: Endpoints = Endpoints(worker, None if previous is None else previous.endpoints)
        self.binds: dict[str, BindPlan] = {}
        self.listeners: dict[str, CompiledListener] = {}
        self.claimed: ClaimCounts = ClaimCounts()
        self.prices: PriceList | None = None
        # By the settings of the access log: ports may have their own.
        self.logging: dict[AccessLog, Logging] = {}
        self.tls_keys: dict[str, tuple[str, ...]] = {bind.key: tls_keys(bind) for bind in gateway.binds if bind.tls}
        # Of ports with TLS: who has which certificate.
        self.names: dict[str, SniSelector] = {}

    @property
    def mcp(self) -> McpHandlers:
        """The handlers of MCP backends, with the sessions of the previous configuration."""
        if self._mcp is None:
            from headgate.pipeline.mcp import McpHandlers

            earlier = None if self._previous is None else self._previous._mcp
            self._mcp = McpHandlers(self.worker, self.gateway, self._relay, earlier, self.shared.ended)
            if self.environment is not None:
                self._mcp.environment = self.environment
        return self._mcp

    @property
    def dynamic(self) -> DynamicPools:
        """The pools of dynamic backends, with those of the previous configuration."""
        if self._dynamic is None:
            from headgate.pipeline.destinations import DynamicPools

            earlier = None if self._previous is None else self._previous._dynamic
            # Not that of other backends: clients choose what is asked, and could keep it busy.
            kept = earlier is not None and self._keeps_names
            names = earlier.resolver if earlier is not None and kept else Resolver(self.gateway.process.dns)
            self._dynamic = DynamicPools(self.worker, self.gateway, names, self.pools.proxies, earlier)
        return self._dynamic

    def relayed(self, key: str) -> Callable[[BackendCall], Awaitable[None]] | None:
        """Return the handler of a request that another worker relays, None if there is none."""
        return None if self._mcp is None else self._mcp.relayed(key)

    def mcp_targets(self) -> list[dict[str, object]]:
        """Return what this worker knows of the MCP targets that it has called."""
        return [] if self._mcp is None else self._mcp.target_states()

    def name_certificates(self, bind: Bind) -> Steps[None]:
        """Take the certificates of a port, the running ones while they stay."""
        previous = self._previous
        before = None if previous is None else previous.names.get(bind.key)
        if previous is None or before is None or previous.tls_keys.get(bind.key) != tls_keys(bind):
            before = yield from SniSelector.steps(bind.listeners, before)
        self.names[bind.key] = before

    def activate(self) -> None:
        """Swap the plans in; requests in flight keep the ones they started with."""
        self.worker.set_replies(engine_replies())
        hide_headers(self.gateway.process.sensitive_headers)
        for listener in self.listeners.values():
            for entry in listener.moved:
                for rule in entry.rules:
                    rule.target = entry.plan
            listener.moved = []
            listener.turn_groups()
        for key, plan in self.binds.items():
            self.worker.set_bind(key, plan)
        self.virtual_keys.turn()
        previous = self._previous
        self._previous = None
        self.endpoints.forget_previous()
        if previous is None:
            self.endpoints.reset()
        else:
            for key in previous.binds.keys() - self.binds.keys():
                self.worker.drop_bind(key)
            previous.pools.close_unused(self.pools)
            if previous._dynamic is not None:
                previous._dynamic.close_unused(self.dynamic)
            if previous._mcp is not None:
                previous._mcp.close_unused(self.mcp)
            previous.keys.close_unused(self.keys)
            previous.credentials.close_unused(self.credentials)
            previous.exporters.close_unused(self.exporters)
            previous.shared.close_unused(self.shared)

    def discard(self, current: RunningConfiguration) -> None:
        """Close the resources of this configuration that `current`, which stays in force, does not have."""
        self._previous = None
        self.pools.close_unused(current.pools)
        if self._dynamic is not None:
            self._dynamic.close_unused(current.dynamic)
        if self._mcp is not None:
            self._mcp.close_unused(current.mcp)
        self.keys.close_unused(current.keys)
        self.credentials.close_unused(current.credentials)
        self.exporters.close_unused(current.exporters)
        self.shared.close_unused(current.shared)

    def release(self, current: RunningConfiguration) -> Steps[None]:
        """Release everything, in steps, once `current` has replaced this configuration. Requests in flight keep their
        plans.

        Freeing a large configuration at once would hold the loop as long as compiling it did.
        """
        gone: list[object] = []
        for key, compiled in self.listeners.items():
            after = current.listeners.get(key)
            if compiled.plan is not None and after is not None and after.table is not None:
                # A request that waits before its route was chosen would keep the whole table otherwise.
                compiled.plan.routes = after.table
            if compiled.plan is not None and isinstance(compiled.plan.origin, Listener):
                # What it was made from has all routes, which would be freed with it at once.
                successor = None if after is None or after.plan is None else after.plan.origin
                compiled.plan.origin = successor or replace(compiled.plan.origin, routes=())
            entries: list[CompiledRoute] = [] if after is None else after.entries
            for hunk in hunks(compiled.entries, entries, is_):
                gone += compiled.entries[hunk.i1 : hunk.i2]
                gone += compiled.listed[hunk.i1 : hunk.i2]
            yield
            # What is left in these is held by the current configuration, too: letting go of it frees nothing, but each
            # takes up to a millisecond for 10,000 routes.
            compiled.table = None
            yield
            while compiled.tables:
                compiled.tables.popitem()
                yield
            compiled.groups.clear()
            compiled.parts.clear()
            yield
            compiled.listed = ()
            yield
            compiled.entries.clear()
            yield
            compiled.routes.clear()
            yield
        self.binds, self.listeners = {}, {}
        if self.gateway.expressions is not current.gateway.expressions:
            # Held one by one first: a set lets go of all that it holds at once.
            left = iter(self.gateway.expressions)
            while some := list(islice(left, STEP)):
                gone += some
                yield
            del left
        self.gateway = current.gateway
        if self.environment is not None:
            yield from self.environment.forget_programs()
        while gone:
            del gone[-FREED:]
            yield

    def begin_drain(self) -> None:
        """End what otherwise lasts until its clients leave."""
        if self._mcp is not None:
            self._mcp.begin_drain()

    async def aclose(self) -> None:
        """End sessions and child processes at shutdown."""
        await self.exporters.aclose()
        await self.shared.aclose()
        self.keys.close()
        self.credentials.close()
        for pool in self.pools.by_key.values():
            pool.close()
        if self._dynamic is not None:
            self._dynamic.close()
        if self._mcp is not None:
            await self._mcp.aclose()


def tls_keys(bind: Bind) -> tuple[str, ...]:
    """Return the identity of the certificates of a port."""
    listeners = (item for item in bind.listeners if item.begins_with_tls)
    return tuple(f"{item.hostname}={'' if item.tls is None else item.tls.key}" for item in listeners)
