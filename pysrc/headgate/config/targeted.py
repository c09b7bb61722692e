"""`policies[]`: which of them reach a route, and how the levels merge.

Weakest to strongest: gateway, gateway on a port, listener, route, route rule, and what is written on the
route. The strongest level that sets a kind wins it whole. One kind differs: a local rate limit on a gateway
or listener is a ceiling over all its routes, so it holds beside the route's own.

With `inheritance: override` what a policy says holds against all stronger levels; of rules of authorization it lets no
more be added.

A policy of the phase `backend` is about calls to the backends that its target leads to. Weakest to strongest: gateway
and listener, backend or service, a section of it, route, route rule, what stands at the backend or the reference. Where
it has no meaning, as `ai` at a host, it has no effect.

All listeners of a file belong to the gateway `default/default`. A policy that protects something is refused where its
target matches nothing: nobody would notice that it holds nowhere. Other policies are warned of.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy import table
from headgate.config.policy_values import (
    NO_OPTIONS,
    BackendOptions,
    OptionsOnDemand,
    backend_options,
    gateway_policies,
    route_backend_options,
    route_policies,
)
from headgate.config.ports import GATEWAY
from headgate.config.shape.route import GATEWAY_PHASE, OF_CALLS
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.document.nodes import DocumentNode
from headgate.errors import Problem
from headgate.ir.policies import (
    NO_GATEWAY_POLICIES,
    NO_ROUTE_POLICIES,
    GatewayPolicies,
    LocalRateLimit,
    RoutePolicies,
    TargetedPolicy,
)

BACKEND_KINDS: Final = frozenset((
    "authorization", "transformations", "requestHeaderModifier", "responseHeaderModifier", "requestRedirect",
    "extAuthz", "backendTLS", "backendAuth", "backendTunnel", "mcpAuthorization", "mcpGuardrails", "ai",
    "a2a", *OF_CALLS,
))  # fmt: skip
# Policies without which more is allowed than was meant.
PROTECTING: Final = frozenset((
    "jwtAuth", "basicAuth", "apiKey", "oidc", "mcpAuthentication", "extAuthz", "authorization", "mcpAuthorization",
    "csrf", "cors", "localRateLimit", "remoteRateLimit", "mcpGuardrails",
))  # fmt: skip
GUARDS: Final = "promptGuard"
EXACTLY_ONE: Final = "'policies' must contain exactly 1 policy"


class Level(IntEnum):
    """How close a policy is to the route, weakest first."""

    GATEWAY = 1
    PORT = 2
    LISTENER = 3
    ROUTE = 4
    RULE = 5
    INLINE = 6


@dataclass(frozen=True, slots=True)
class ListenerPlace:
    """The listener a route is merged for. `listeners`: the names that it goes by."""

    gateway: str
    namespace: str
    listeners: frozenset[str]
    port: int


@dataclass(frozen=True, slots=True)
class Layer:
    """The policies of one level. `gateway` applies in the gateway phase of a listener, the rest to its routes.
    `attached`: those of the phase `backend`. `overrides`: stronger levels do not change what this one says."""

    level: Level
    policies: RoutePolicies
    options: BackendOptions
    gateway: GatewayPolicies = NO_GATEWAY_POLICIES
    attached: BackendOptions = NO_OPTIONS
    overrides: bool = False


@dataclass(slots=True)
class _Policy:
    record: Record
    level: Level
    target: dict[str, str | int]
    layer: Layer

    def reaches_listener(self, place: ListenerPlace) -> bool:
        target = self.target
        if (target["gatewayName"], target["gatewayNamespace"]) != (place.gateway, place.namespace):
            return False
        if "listenerName" in target and target["listenerName"] not in place.listeners:
            return False
        return "port" not in target or target["port"] == place.port

    def reaches_route(self, name: str, namespace: str, rule: str | None) -> bool:
        target = self.target
        if (target["name"], target["namespace"]) != (name, namespace):
            return False
        return "ruleName" not in target or target["ruleName"] == rule


class _BackendPolicy(OptionsOnDemand):
    """`what`: `backend` or `service`; `target`: its names."""

    def __init__(self, context: Context, record: Record, what: str, target: dict[str, Any]) -> None:
        super().__init__(context, record, record["policy"])
        self.what = what
        self.target = target


class Unused(NamedTuple):
    """What to say of a policy where its target matches nothing, and whether the configuration is refused then."""

    message: str
    refused: bool


class TargetedPolicies:
    """All `policies[]` of a file."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.found: list[_Policy] = []
        self.of_backends: list[_BackendPolicy] = []
        self.dumped: list[TargetedPolicy] = []
        self._records: list[Record] = []
        self._of_record: dict[int, _BackendPolicy] = {}

    def declare(self, records: list[Record]) -> None:
        """Register the policies of backends and services, which other policies may call."""
        self._records = records
        for record in records:
            aimed = record["target"].get("backend")
            names = {} if aimed is None else {name: value for name, value in aimed.values.items() if value is not None}
            if len(names) == 1 and len(_kinds(record)) == 1:
                [(what, entry)] = names.items()
                target = {name: value for name, value in entry.values.items() if value is not None}
                found = self._of_record[id(record)] = _BackendPolicy(self.context, record, what, target)
                if not BACKEND_KINDS.isdisjoint(_kinds(record)):
                    self.of_backends.append(found)

    def read(self) -> None:
        """Read all policies."""
        context = self.context
        names: set[str] = set()
        for record in self._records:
            key = f"{record['name']['namespace']}/{record['name']['name']}"
            if key in names:
                context.fault(Problem.CONFLICT, record, "name", f"policy {key!r} is declared twice")
            names.add(key)
            self._add(record, key)

    def _add(self, record: Record, key: str) -> None:
        policy, target = record["policy"], record["target"]
        kinds = _kinds(record)
        if len(kinds) != 1:
            self.context.fault(Problem.VALUE, record, "policy", EXACTLY_ONE)
            return
        phase = record.get("phase", "route")
        if phase == "gateway" and kinds[0] not in GATEWAY_PHASE:
            self.context.fault(
                Problem.VALUE, policy, kinds[0], "this policy does not run in the gateway phase"
            )
            return
        # A kind may be written with null: it is as good as none.
        kind = next((kind for kind, value in target.values.items() if value is not None), None)
        if kind is None:
            return
        if phase == "gateway" and kind != "gateway":
            self.context.fault(
                Problem.VALUE, target, kind, "the gateway phase has no routes: target a gateway"
            )
            return
        found = target[kind]
        entry = {name: value for name, value in found.values.items() if value is not None}
        level = _level(kind, entry)
        if (kind == "backend" or phase == "backend") and not self._of_backends(policy, kinds[0]):
            return
        if kind == "backend":
            if record.get("inheritance") is not None:
                message = "is for policies of requests, not for those of a backend"
                self.context.fault(Problem.CONFLICT, record, "inheritance", message)
            self._add_backend(record, key)
            return
        if phase != "backend" and kinds[0] in OF_CALLS:
            self.context.fault(Problem.VALUE, policy, kinds[0], "this policy is about backends: it needs phase backend")
            return
        overrides = record.get("inheritance") == "override"
        layer = self._layer(level, phase, policy, f"policy/{key}")
        if overrides and not self._may_override(record, phase, kinds[0]):
            return
        layer = replace(layer, overrides=overrides)
        self.found.append(_Policy(record, level, entry, layer))
        self.dumped.append(
            TargetedPolicy(
                key=key,
                name=record["name"]["name"],
                namespace=record["name"]["namespace"],
                target_kind=kind,
                target=tuple((name, str(value)) for name, value in entry.items()),
                phase=phase,
                kind=kinds[0],
                route=layer.policies,
                gateway=layer.gateway,
                backend=layer.attached.policies(),
                overrides=overrides,
            )
        )

    def _may_override(self, record: Record, phase: str, kind: str) -> bool:
        """Tell whether a policy is one of requests, after reporting an error if not."""
        fits = phase != "backend" and any(one.key == kind for one in table.KINDS)
        if not fits:
            self.context.fault(Problem.CONFLICT, record, "inheritance", f"override is not for {kind} of phase {phase}")
        return fits

    def _layer(self, level: Level, phase: str, policy: Record, owner: str) -> Layer:
        context = self.context
        if phase == "backend":
            return Layer(level, NO_ROUTE_POLICIES, NO_OPTIONS, attached=backend_options(context, policy))
        options = route_backend_options(context, policy)
        if phase == "gateway":
            return Layer(level, NO_ROUTE_POLICIES, options, gateway_policies(context, policy, owner))
        return Layer(level, route_policies(context, policy, owner), options)

    def _of_backends(self, policy: Record, kind: str) -> bool:
        """Tell whether a policy is one of backends, after reporting an error if not."""
        if kind not in BACKEND_KINDS:
            message = f"this policy is not one of backends ({', '.join(sorted(BACKEND_KINDS))})"
            self.context.fault(Problem.VALUE, policy, kind, message)
        return kind in BACKEND_KINDS

    def _add_backend(self, record: Record, key: str) -> None:
        """Note a policy of a named backend or a service."""
        [kind] = _kinds(record)
        one = self._of_record[id(record)]
        options = one.options
        self.dumped.append(
            TargetedPolicy(
                key=key,
                name=record["name"]["name"],
                namespace=record["name"]["namespace"],
                target_kind="backend",
                target=((one.what, tuple((name, str(value)) for name, value in one.target.items())),),
                phase="route",
                kind=kind,
                backend=options.policies(),
            )
        )

    def for_backend(self, name: str) -> BackendOptions:
        """Return the policies that target a named backend of the file, which has no namespace."""
        return self._of("backend", {"name": name, "namespace": ""})

    def for_section(self, name: str, section: str) -> BackendOptions:
        """Return the policies that target a provider or an MCP target of a named backend."""
        return self._of("backend", {"name": name, "namespace": "", "section": section})

    def for_service(self, namespace: str, hostname: str, port: int) -> BackendOptions:
        """Return the policies that target a service or one of its ports. The port takes precedence."""
        whole = self._of("service", {"hostname": hostname, "namespace": namespace})
        return whole.under(self._of("service", {"hostname": hostname, "namespace": namespace, "port": port}))

    def _of(self, what: str, target: dict[str, Any]) -> BackendOptions:
        options = NO_OPTIONS
        for one in self.of_backends:
            if one.what == what and one.target == target:
                self.context.notes.used.add(one.record.path)
                options = options.under(one.options)
        return options

    def for_listener(self, place: ListenerPlace) -> list[Layer]:
        """Return the layers of gateway and listener, weakest first."""
        found = [one for one in self.found if one.level <= Level.LISTENER and one.reaches_listener(place)]
        return self._used(found)

    def for_route(self, name: str, namespace: str, rule: str | None) -> list[Layer]:
        """Return the layers that target a route by name, weakest first."""
        if not self.found:
            return []
        found = [
            one for one in self.found if one.level >= Level.ROUTE and one.reaches_route(name, namespace, rule)
        ]
        return self._used(found)

    def _used(self, found: list[_Policy]) -> list[Layer]:
        self.context.notes.used.update(one.record.path for one in found)
        return sorted((one.layer for one in found), key=lambda layer: layer.level)

    def about_unused(self) -> dict[str, Unused]:
        """Return by path what to say of each policy if its target matches nothing."""
        found = {one.record.path: _unused(one.record, _unmatched(one)) for one in self.found}
        return found | {one.record.path: _unused(one.record, "no route uses the target") for one in self.of_backends}

    def refuse(self, unused: dict[str, str]) -> None:
        """Report an error for each of these policies. `unused`: the reasons by path."""
        records = [one.record for one in self.found] + [one.record for one in self.of_backends]
        for record in records:
            if record.path in unused:
                self.context.fault(Problem.REFERENCE, record, "target", unused[record.path])


def _kinds(record: Record) -> list[str]:
    """Return the kinds of policy that an entry has."""
    return [kind for kind, entry in record["policy"].node.value.items() if entry.node.value is not None]


def _unmatched(policy: _Policy) -> str:
    if policy.level >= Level.ROUTE:
        return "the target matches no route"
    wanted = f"{policy.target['gatewayNamespace']}/{policy.target['gatewayName']}"
    if wanted == GATEWAY:
        return f"the target matches no listener of the gateway {GATEWAY}"
    told = f"there is no gateway {wanted}: all listeners belong to {GATEWAY}"
    return f"{told}, and gateways.<x> is its listener <x> (listenerName)"


def _unused(record: Record, message: str) -> Unused:
    written = record["policy"].node.value
    return Unused(message, any(_protects(kind, entry.node) for kind, entry in written.items()))


def _protects(kind: str, node: DocumentNode) -> bool:
    """Tell whether more is allowed without a policy than with it."""
    if kind == "ai":
        return isinstance(node.value, dict) and GUARDS in node.value
    return kind in PROTECTING and node.value is not None


def _level(kind: str, target: dict[str, str | int]) -> Level:
    if kind == "route":
        return Level.RULE if "ruleName" in target else Level.ROUTE
    if "listenerName" in target:
        return Level.LISTENER
    return Level.PORT if "port" in target else Level.GATEWAY


class Inherited(NamedTuple):
    """Backend policies of the levels above a backend. Policies that target the backend itself rank between the two."""

    listener: BackendOptions = NO_OPTIONS
    route: BackendOptions = NO_OPTIONS
    # Of the phase `backend` at routes and their rules.
    attached: BackendOptions = NO_OPTIONS

    def around(self, target: BackendOptions) -> BackendOptions:
        """Return the merged policies; those of the route are the strongest."""
        return self.listener.under(target).under(self.attached).under(self.route)

    def of_streams(self) -> Inherited:
        """Return these without what MCP servers, which are one place and answer with streams, cannot have."""
        return self._replace(listener=_of_streams(self.listener), attached=_of_streams(self.attached))


def _of_streams(options: BackendOptions) -> BackendOptions:
    changes = tuple(replace(one, response=None) for one in options.transformations or ())
    return replace(options, health=None, affinity=None, transformations=changes or None)


def merge(layers: list[Layer]) -> tuple[RoutePolicies, Inherited]:
    """Merge the layers of a route, weakest first."""
    listener = route = attached = NO_OPTIONS
    for layer in layers:
        if layer.level <= Level.LISTENER:
            listener = listener.under(layer.options).under(layer.attached)
        else:
            route, attached = route.under(layer.options), attached.under(layer.attached)
    options = Inherited(listener, route, attached)
    if len(layers) == 1:
        return layers[0].policies, options
    chosen = _chosen([(layer.policies, layer.overrides) for layer in layers])
    limits = [(one, one.policies.local_rate_limits) for one in layers if one.policies.local_rate_limits]
    ceiling, locked = _held([(one.overrides, said) for one, said in limits if one.level <= Level.LISTENER])
    own, _ = _held([(one.overrides, said) for one, said in limits if one.level > Level.LISTENER and not locked])
    chosen["local_rate_limits"] = (*ceiling, *own)
    return RoutePolicies(**chosen), options


def merge_gateway(layers: list[Layer], inline: GatewayPolicies) -> GatewayPolicies:
    """Merge the gateway phase of a listener: its layers, weakest first, below its inline policies."""
    chosen = _chosen([*((layer.gateway, layer.overrides) for layer in layers), (inline, False)])
    return GatewayPolicies(**chosen) if chosen else NO_GATEWAY_POLICIES


def _chosen(levels: Sequence[tuple[GatewayPolicies, bool]]) -> dict[str, Any]:
    """Return the effective policies by field: the strongest of each kind, or all together, up to one that overrides.
    `levels`: the weakest first, and whether each overrides."""
    chosen: dict[str, Any] = {}
    locked: set[str] = set()
    for level, overrides in levels:
        for kind in table.KINDS if isinstance(level, RoutePolicies) else table.GATEWAY_KINDS:
            value = getattr(level, kind.field)
            if value is None or value == () or kind.field in locked:
                continue
            known = chosen.get(kind.field)
            chosen[kind.field] = known + value if kind.accumulate and known is not None else value
            if overrides:
                locked.add(kind.field)
    return chosen


def _held(levels: list[tuple[bool, tuple[LocalRateLimit, ...]]]) -> tuple[tuple[LocalRateLimit, ...], bool]:
    """Return the limits of the strongest level, or of the first that overrides, and whether one does."""
    found: tuple[LocalRateLimit, ...] = ()
    for overrides, found in levels:
        if overrides:
            return found, True
    return found, False
