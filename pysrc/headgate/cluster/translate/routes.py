"""What routes of HTTP and of gRPC have in common: each rule is a route of the file at each listener."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of, seniority
from headgate.cluster.translate.attached_models import is_models, models_of_rule
from headgate.cluster.translate.backend_filters import OF_ROUTES, fitted, grouped
from headgate.cluster.translate.backends import nowhere, target
from headgate.cluster.translate.checked import faults_of_route
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.delegation import delegate, delegates
from headgate.cluster.translate.filters import ANSWER, Delegated, FilterReader
from headgate.cluster.translate.fragments import Fragment, Json, group_key
from headgate.cluster.translate.gateway_backends import named
from headgate.cluster.translate.parents import Attachment
from headgate.document.fields import pattern

# Names a group that stands for backends of gRPC that do not exist.
_BROKEN: Final = "unresolved/unavailable"
# Of a rule without a match.
ANY: Final[Json] = {"path": {"pathPrefix": "/"}}


@dataclass(slots=True)
class RouteResult:
    """What a route came to at one parent. `invalid`: by the number of a rule why it is not in force; `unresolved`:
    references that lead nowhere; `used`, `backends`: the Services and GatewayBackends behind the others; `delegated`:
    the routes that it hands requests on to."""

    fragments: list[Fragment] = field(default_factory=list)
    used: list[ObjectKey] = field(default_factory=list)
    backends: list[ObjectKey] = field(default_factory=list)
    delegated: list[Delegated] = field(default_factory=list)
    invalid: dict[int, list[Unmet]] = field(default_factory=dict)
    unresolved: list[Unmet] = field(default_factory=list)


class RouteDialect(NamedTuple):
    """What kinds of routes differ in.

    `mark`: stands in front of the section in keys. `named`: the name that a route has in the file. `match`: one match
    of the file, or a ValueError. `policies`: what a rule says beside its filters. `broken`: the answer of a rule that
    has no backend to send anything to. `delegates`: it may hand requests on to routes of its kind. `grpc`: a Service
    is spoken to in HTTP/2 if its port does not say, and a reference that leads nowhere has that answer too.
    """

    mark: str
    named: Callable[[str], str]
    match: Callable[[Json], Json]
    policies: Callable[[Json], Json]
    broken: Json
    delegates: bool = False
    grpc: bool = False


def translated(
    snapshot: Snapshot, route: Json, dialect: RouteDialect, attachments: list[Attachment], places: dict[str, str]
) -> RouteResult:
    """Return the routes of the file for a route. `places`: the key of each listener's fragment, by its name.

    Without an attachment there are no routes; references are looked at all the same.
    """
    result = RouteResult()
    for index, rule in enumerate(route["spec"].get("rules") or ()):
        for attachment in attachments or (None,):
            filters = FilterReader(snapshot, route, attachment.listener.port if attachment else 0)
            value = _rule(snapshot, route, rule, dialect, filters)
            if (wrong := _faults(snapshot, value, filters)) is not None:
                filters.invalid.append(wrong)
            result.unresolved += filters.unresolved
            result.used += filters.used
            result.backends += filters.backends
            if filters.invalid:
                result.invalid[index] = filters.invalid
            elif attachment is not None and attachment.listener.served:
                if attachment.hostnames:
                    value["hostnames"] = list(attachment.hostnames)
                section = attachment.listener.title
                fragment = Fragment(
                    key=f"route/{key_of(route)}.{index:02d}.{dialect.mark}{section}",
                    place="routes",
                    value=value,
                    parent=places[section],
                    # What is equally specific is chosen by age, then by name, then by the rule's place.
                    order=(*seniority(route), index),
                )
                result.fragments += [*filters.fragments, fragment]
                result.delegated += filters.delegated
    return result


def _rule(snapshot: Snapshot, route: Json, rule: Json, dialect: RouteDialect, filters: FilterReader) -> dict[str, Any]:
    """Return one rule, which is not to be used if `filters` finds it invalid."""
    policies = filters.read(rule.get("filters") or ())
    policies |= dialect.policies(rule)
    backends = list(_backends(snapshot, route, rule, dialect, filters, policies))
    # A route of HTTP without a backend gets status 500 from the gateway, unless a policy answers.
    if not backends and dialect.grpc and "requestRedirect" not in policies:
        policies["directResponse"] = dialect.broken
    found: dict[str, Any] = _about(route, dialect)
    if rule.get("name"):
        found["ruleName"] = rule["name"]
    found["matches"] = list(_matches(rule, dialect, filters)) or [ANY]
    if policies:
        found["policies"] = policies
    if backends:
        found["backends"] = backends
    return found


def _faults(snapshot: Snapshot, value: Json, filters: FilterReader) -> Unmet | None:
    """Return what the loader says of a rule whose parts it takes, but perhaps not together."""
    edited = any(one.get("policies", {}).keys() - {"http"} for one in value.get("backends", ()))
    if not (edited or filters.backends):
        return None
    known = [one.value for one in named(snapshot, set(filters.backends))]
    # Names and matches have no part in it, so rules that do the same are looked at once.
    wrong = faults_of_route({name: value[name] for name in ("policies", "backends") if name in value}, known)
    return Unmet("UnsupportedValue", "; ".join(wrong)) if wrong else None


def _matches(rule: Json, dialect: RouteDialect, filters: FilterReader) -> Iterator[Json]:
    for one in rule.get("matches") or ():
        try:
            yield dialect.match(one)
        except ValueError as error:
            filters.invalid.append(Unmet("UnsupportedValue", f"a match is {error}"))


def _backends(
    snapshot: Snapshot, route: Json, rule: Json, dialect: RouteDialect, filters: FilterReader, of_rule: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Return the backends of a rule. of_rule: its policies, to which those of an only backend may be added."""
    for at, reference in enumerate(rule.get("backendRefs") or ()):
        if dialect.delegates and delegates(reference):
            yield _handed_on(snapshot, route, reference, dialect, filters)
            continue
        if dialect.delegates and is_models(reference):
            found = models_of_rule(route, rule)
            if isinstance(found, Unmet):
                filters.unresolved.append(found)
                found = nowhere(route, reference)
            policies = filters.read(reference.get("filters") or ())
            yield {"weight": reference.get("weight", 1)} | found | ({"policies": policies} if policies else {})
            continue
        reached = target(snapshot, route, reference)
        weight = {"weight": reference.get("weight", 1)}
        if isinstance(reached, Unmet):
            filters.unresolved.append(reached)
            if dialect.grpc:
                filters.fragments += _broken_group(dialect)
                yield weight | {"routeGroup": _BROKEN}
            else:
                yield weight | nowhere(route, reference)
            continue
        filters.note(reached)
        if reached.of_routes and len(rule["backendRefs"]) > 1:
            message = f"{', '.join(reached.of_routes)} of GatewayBackend {reached.backend}: it must be the only backend"
            filters.invalid.append(Unmet("UnsupportedValue", message))
        of_rule |= reached.of_routes
        policies = filters.read(reference.get("filters") or ())
        if ANSWER in policies:
            yield weight | nowhere(route, reference)
            continue
        if policies:
            fits = fitted(policies, rule, of_rule, reached)
            if isinstance(fits, Unmet):
                filters.invalid.append(fits)
                fits = {}
            policies = fits
        if dialect.grpc and not reached.says_protocol:
            policies["http"] = {"version": "HTTP/2"}
        # What a reference says comes before what its backend says of itself.
        policies = reached.form.get("policies", {}) | policies
        entry = weight | reached.form | ({"policies": policies} if policies else {})
        if not policies.keys() & {*OF_ROUTES}:
            yield entry
            continue
        fragments, entry = grouped(_group_name(route, rule, at, dialect), _about(route, dialect), rule, entry)
        if (wrong := _faults(snapshot, fragments[-1].value, filters)) is not None:
            filters.invalid.append(wrong)
        filters.fragments += fragments
        yield entry


def _about(route: Json, dialect: RouteDialect) -> Json:
    return {"name": dialect.named(key_of(route).name), "namespace": key_of(route).namespace}


def _group_name(route: Json, rule: Json, at: int, dialect: RouteDialect) -> str:
    """Return the name of the group for the backend of a rule with a number."""
    number = next(index for index, one in enumerate(route["spec"]["rules"]) if one is rule)
    return f"mirrored/{dialect.mark}{key_of(route)}.{number:02d}.{at:02d}"


def _broken_group(dialect: RouteDialect) -> list[Fragment]:
    """Return a route group that answers what the dialect answers without a backend: such a backend keeps its share."""
    group = Fragment(key=group_key(_BROKEN), place="routeGroups", value={"name": _BROKEN})
    answer = {"directResponse": dialect.broken}
    value = {"name": _BROKEN, "namespace": "default", "matches": [ANY], "policies": answer}
    return [group, Fragment(key=f"{group.key}/answer", place="routes", value=value, parent=group.key)]


def _handed_on(
    snapshot: Snapshot, route: Json, reference: Json, dialect: RouteDialect, filters: FilterReader
) -> dict[str, Any]:
    """Return the backend for a reference to other routes."""

    def rule(child: Json, entry: Json, reader: FilterReader) -> dict[str, Any]:
        value = _rule(snapshot, child, entry, dialect, reader)
        if (wrong := _faults(snapshot, value, reader)) is not None:
            reader.invalid.append(wrong)
        return value

    found = delegate(snapshot, route, reference, filters, rule)
    if isinstance(found, Unmet):
        filters.unresolved.append(found)
        found = nowhere(route, reference)
    policies = filters.read(reference.get("filters") or ())
    return {"weight": reference.get("weight", 1)} | found | ({"policies": policies} if policies else {})


def entries(match: Json, name: str, folded: bool) -> list[Json]:
    """Return conditions on headers or parameters. Of several about one name the first counts; `folded`: in any case.

    Raises ValueError for a pattern that is none.
    """
    kept: dict[str, Json] = {}
    for one in match.get(name) or ():
        kept.setdefault(one["name"].lower() if folded else one["name"], one)
    return [{"name": one["name"], "value": _value(one)} for one in kept.values()]


def _value(one: Json) -> Json:
    if one.get("type") == "RegularExpression":
        return {"regex": pattern(one["value"])}
    return {"exact": one["value"]}
