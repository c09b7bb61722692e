"""Routes to the IR: matches, names, and the policies of all levels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from headgate.config.backends import Backends
from headgate.config.check import Record
from headgate.config.context import Context, Notes
from headgate.config.policy_values import NO_OPTIONS, BackendOptions, route_backend_options, route_policies
from headgate.config.targeted import Layer, Level, TargetedPolicies, merge
from headgate.document.lazy_dataclass import dataclass
from headgate.ir.backend import RouteBackend, uses_models
from headgate.ir.match import ANY_PATH, ANY_REQUEST, Match, PathKind, PathMatch, ValueMatch
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
    to by the key of the listener.
    """

    record: Record
    index: int
    notes: Notes
    built: dict[str, Route] = field(default_factory=dict)

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
    plain: Route | None = field(default=None)
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

    def build(self, spec: RouteSpec, above: list[Layer]) -> Route:
        """Return the route for a listener with the policy layers `above`."""
        if spec.listed is None:
            return self._build(spec, above)
        return self.context.noting(spec.listed.notes, self._build, spec, above)

    def _build(self, spec: RouteSpec, above: list[Layer]) -> Route:
        if not above and spec.plain is not None:
            return spec.plain
        policies, options = merge([*above, *spec.by_name, spec.inline])
        if spec.factory is not None:
            backends = spec.factory(options.around(NO_OPTIONS))
        else:
            backends = self.backends.of_route(spec.records, options, f"route/{spec.key}")
        route = Route(
            key=spec.key,
            name=spec.name,
            namespace=spec.namespace,
            rule_name=spec.rule_name,
            hostnames=spec.hostnames,
            matches=spec.matches,
            policies=policies,
            backends=backends,
        )
        if not above:
            spec.plain = route
        limits = spec.inline.policies.local_rate_limits
        if any(limit.tokens for limit in limits) and not uses_models(backends):
            self.context.warnings.append(f"{spec.path}: a limit of tokens has no effect: no backend is a model")
        return route
