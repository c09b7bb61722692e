"""Routes to the IR: matches, names, and the policies of all levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from headgate.config.backends import Backends
from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.policy_values import (
    NO_OPTIONS,
    BackendOptions,
    backend_options,
    route_backend_options,
    route_policies,
)
from headgate.config.route_groups import RouteGroups
from headgate.config.targeted import Inherited, Layer, Level, TargetedPolicies, merge
from headgate.document.lazy_dataclass import dataclass, replace
from headgate.errors import Problem
from headgate.ir.backend import GroupBackend, MissingBackend, RouteBackend, uses_models
from headgate.ir.match import ANY_PATH, ANY_REQUEST, Match, PathKind, PathMatch, ValueMatch
from headgate.ir.mcp import McpBackend
from headgate.ir.model import AiBackend, LlmRouter
from headgate.ir.policies import NO_ROUTE_POLICIES, RoutePolicies
from headgate.ir.route import Route

_PATH_KINDS: dict[str, PathKind] = {"exact": "exact", "pathPrefix": "prefix", "regex": "regex"}


def values(records: list[Record]) -> tuple[ValueMatch, ...]:
    """Return the conditions of headers or of a query."""
    found = []
    for record in records:
        value = record.get("value")
        if value is not None:
            kind = "exact" if "exact" in value else "regex"
            found.append(ValueMatch(name=record["name"], kind=kind, value=value[kind]))  # type: ignore[arg-type]
    return tuple(found)


def _match(record: Record) -> Match:
    path = ANY_PATH
    entry = record.get("path")
    if entry is not None:
        key, value = next(iter(entry.values.items()))  # the shape of the file wants one, and no more
        path = PathMatch(kind=_PATH_KINDS[key], value=value)
    return Match(
        path=path,
        method=record.get("method"),
        headers=values(record.records("headers")),
        query=values(record.records("query")),
    )


def matches(records: list[Record] | None) -> tuple[Match, ...]:
    """Return the match entries of a route. Without any, returns one that matches every request."""
    return tuple(_match(record) for record in records) if records else (ANY_REQUEST,)


@dataclass(slots=True)
class ListedRoute:
    """A route of the file: its record, its index in its list, the notes of all that was read for it, and what it came
    to by the key of the listener: itself, and the routes that it leads to.
    """

    record: Record
    index: int
    notes: Notes
    built: dict[str, tuple[Route, ...]] = field(default_factory=dict)

    @property
    def list_path(self) -> str:
        """The path of the list: `routes`, or that of a listener."""
        return self.record.path.rpartition("[")[0]


@dataclass(slots=True)
class RouteSpec:
    """A route before it is merged for a listener. `factory` builds the backends of routes from `llm` and `mcp`.
    `listed`: further data of a route from a list of routes. `path`: the route's place in the document.
    """

    key: str
    name: str
    namespace: str
    rule_name: str | None
    hostnames: tuple[str, ...]
    matches: tuple[Match, ...]
    inline: Layer
    by_name: list[Layer]
    records: list[Record]
    factory: Callable[[BackendOptions], tuple[RouteBackend, ...]] | None = None
    plain: tuple[Route, ...] | None = field(default=None)
    listed: ListedRoute | None = None
    path: str = ""


class Routes:
    """Builds routes: one object for all listeners with equal policies."""

    def __init__(self, context: Context, backends: Backends, targeted: TargetedPolicies) -> None:
        self.context = context
        self.backends = backends
        self.targeted = targeted
        self.order = 0
        self.keys: set[str] = set()
        self.groups = RouteGroups(context, self)
        # Whether two routes have one name, so that the key of one depends on the other.
        self.ambiguous = False

    def spec(self, record: Record, number: int, scope: str = "") -> RouteSpec:
        """Return the route of a record, number `number` of those that are read of its list; `scope` keeps the keys of
        long-form routes apart.
        """
        index = self.context.index(record, number)
        spec, notes = self.context.noted(self._spec, record, index, scope)
        spec.listed = ListedRoute(record, index, notes)
        return spec

    def of_group(self, record: Record, index: int, scope: str) -> RouteSpec:
        """Return a route of a group, after looking for faults in its backends: maybe nobody delegates to it."""
        spec = self._spec(record, index, scope)
        _, options = merge([*spec.by_name, spec.inline])
        self.backends.of_route(spec.records, options, f"route/{spec.key}")
        return spec

    def _spec(self, record: Record, index: int, scope: str) -> RouteSpec:
        name = record.get("name") or f"route{index}"
        namespace = record.get("namespace") or "default"
        hostnames = tuple(dict.fromkeys(record.get("hostnames") or ()))
        return self.make(
            record,
            (name, namespace, record.get("ruleName")),
            scope=scope,
            hostnames=() if "*" in hostnames else hostnames,
            matches=matches(record.get("matches")),
        )

    def make(
        self,
        record: Record,
        names: tuple[str, str, str | None],
        *,
        scope: str = "",
        hostnames: tuple[str, ...] = (),
        matches: tuple[Match, ...] = (ANY_REQUEST,),
    ) -> RouteSpec:
        """Return a route with the `policies` and `backends` of a record."""
        name, namespace, rule = names
        key = f"{scope}/{namespace}/{name}" if scope else f"{namespace}/{name}"
        if key in self.keys:
            self.ambiguous = True
            key = f"{key}.{rule or self.order}"
        while key in self.keys:
            key += "'"
        self.keys.add(key)
        policies = record.get("policies")
        inline = Layer(
            Level.INLINE,
            route_policies(self.context, policies, f"route/{key}"),
            route_backend_options(self.context, policies),
        )
        self.order += 1
        return RouteSpec(
            key=key,
            name=name,
            namespace=namespace,
            rule_name=rule,
            hostnames=hostnames,
            matches=matches,
            inline=inline,
            by_name=self.targeted.for_route(name, namespace, rule),
            records=record.records("backends"),
            path=record.path,
        )

    def build(self, spec: RouteSpec, above: list[Layer]) -> tuple[Route, ...]:
        """Return the route for a listener with the policy layers `above`, and behind it the routes that it leads to."""
        if spec.listed is None:
            return self._build(spec, above)
        return self.context.noting(spec.listed.notes, self._build, spec, above)

    def _build(self, spec: RouteSpec, above: list[Layer]) -> tuple[Route, ...]:
        if not above and spec.plain is not None:
            return spec.plain
        layers = [*above, *spec.by_name, spec.inline]
        policies, options = merge(layers)
        if spec.factory is not None:
            backends = spec.factory(options.around(NO_OPTIONS))
        else:
            backends = self.backends.of_route(spec.records, options, f"route/{spec.key}")
        route = self._route(spec, spec.key, policies, backends)
        found = (route, *self._delegated(spec, route, layers, 0))
        if not above:
            spec.plain = found
        self._check_reach(spec, options, found)
        limits = spec.inline.policies.local_rate_limits
        if any(limit.tokens for limit in limits) and not any(uses_models(one.backends) for one in found):
            self.context.warnings.append(f"{spec.path}: a limit of tokens has no effect: no backend is a model")
        return found

    def _route(
        self, spec: RouteSpec, key: str, policies: RoutePolicies, backends: tuple[RouteBackend, ...], parent: str = ""
    ) -> Route:
        return Route(
            key=key,
            name=spec.name,
            namespace=spec.namespace,
            rule_name=spec.rule_name,
            hostnames=spec.hostnames,
            matches=spec.matches,
            policies=policies,
            backends=self._with_tools(policies, backends),
            parent=parent,
        )

    def _with_tools(self, policies: RoutePolicies, backends: tuple[RouteBackend, ...]) -> tuple[RouteBackend, ...]:
        """Return the backends with a rule for the tools that a virtual key may use, where clients may have one."""
        if policies.api_key is None or not policies.api_key.virtual:
            return backends
        return self._ruled(backends)

    def for_keys(self, route: Route) -> Route:
        """Return a route with that rule, at a listener whose clients have virtual keys in front of it."""
        if route.policies.api_key is not None and route.policies.api_key.virtual:
            return route                   # it has the rule
        backends = self._ruled(route.backends)
        return route if backends is route.backends else replace(route, backends=backends)

    def _ruled(self, backends: tuple[RouteBackend, ...]) -> tuple[RouteBackend, ...]:
        if not any(isinstance(one.backend, McpBackend) for one in backends):
            return backends
        from headgate.config.virtual_keys import with_tool_rule  # as the section itself

        return tuple(with_tool_rule(self.context, one) for one in backends)

    def _delegated(self, spec: RouteSpec, route: Route, layers: list[Layer], depth: int) -> Iterator[Route]:
        """Yield the routes that a route leads to; `layers`: its policies, weakest first; `depth`: how many routes are
        in front of it.
        """
        groups = [one.backend for one in route.backends if isinstance(one.backend, GroupBackend)]
        # A backend with a fault is left out, a group never is.
        records = [record for record in spec.records if record.get("routeGroup") is not None] if groups else []
        for record, backend in zip(records, groups, strict=True):
            group = self.groups.used(record, backend.name)
            if group is None or not self.groups.sound:
                continue
            options = backend_options(self.context, record.get("policies"))
            above = [*layers, Layer(Level.INLINE, NO_ROUTE_POLICIES, options)]
            for child in group.specs:
                yield from self._child(child, route, backend.key, above, depth)

    def _child(
        self, spec: RouteSpec, parent: Route, delegation: str, above: list[Layer], depth: int
    ) -> Iterator[Route]:
        """Yield a route of a group, and those that it leads to in turn."""
        layers = [*above, *spec.by_name, spec.inline]
        policies, options = merge(layers)
        own, own_options = merge([*spec.by_name, spec.inline])
        key = f"{delegation}>{spec.key.split('/', 2)[2]}"
        backends = self.backends.of_route(spec.records, options, f"route/{spec.key}", own_options.route)
        backends = tuple(_at(one, key) for one in backends)
        route = self._route(spec, key, _with_levels(policies, own, parent.policies, depth), backends, delegation)
        yield route
        yield from self._delegated(spec, route, layers, depth + 1)

    def _check_reach(self, spec: RouteSpec, options: Inherited, found: tuple[Route, ...]) -> None:
        """Report policies for backends of a kind that is not among those which a delegating route leads to."""
        if len(found) == 1:
            return
        kinds = {type(entry.backend) for route in found for entry in route.backends}
        for key, value, kind, what in (
            ("mcpAuthorization", options.route.mcp_rules, (McpBackend,), "MCP"),
            ("mcpGuardrails", options.route.guardrails, (McpBackend,), "MCP"),
            ("ai", options.route.ai, (AiBackend, LlmRouter), "AI"),
        ):
            if value is not None and kinds.isdisjoint((*kind, MissingBackend)):
                for record in spec.records[:1]:
                    message = f"{key} of the route is only for {what} backends, and it leads to none"
                    self.context.fault(Problem.CONFLICT, record, "", message)


def _at(entry: RouteBackend, key: str) -> RouteBackend:
    """Return a backend of a route that is built for one way: a group that it leads to is another one on another way."""
    backend = entry.backend
    if not isinstance(backend, GroupBackend):
        return entry
    return replace(entry, backend=replace(backend, key=f"{key}>{backend.key.rpartition('>')[2]}"))


def _with_levels(merged: RoutePolicies, own: RoutePolicies, above: RoutePolicies, depth: int) -> RoutePolicies:
    """Return the policies of a delegated route. An inherited change of a matched prefix is one of the prefix that the
    route matched which brought it, `depth` routes from the outermost.
    """
    changes: dict[str, Any] = {}
    for name in ("rewrite", "redirect"):
        inherited = getattr(above, name)
        if getattr(own, name) is None and inherited is not None and inherited.path is not None:
            level = depth if inherited.path.level is None else inherited.path.level
            changes[name] = replace(inherited, path=replace(inherited.path, level=level))
    return replace(merged, **changes) if changes else merged
