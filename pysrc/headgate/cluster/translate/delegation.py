"""HTTPRoutes that hand requests on to other HTTPRoutes: a reference of kind HTTPRoute is a route group of the file.

The name in the reference is that of a route, `*` for all routes of the namespace, or `label=value`. Routes below are
those without parentRefs, and those with a parentRef that names the route above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from headgate.cluster.snapshot import HTTP_ROUTE, GroupKind, Snapshot, key_of, seniority
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.filters import MOST_DELEGATED, Delegated, FilterReader
from headgate.cluster.translate.fragments import Fragment, Json, group_key
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.parents import named

# What the loader of the file takes: groups behind each other.
_MOST_DEPTH: Final = 8
_ALL: Final = "*"

# Returns one rule of a route as the file has it: rule(route, rule, filters).
RuleReader = Callable[[Json, Json, FilterReader], dict[str, Any]]


def delegates(reference: Json) -> bool:
    """Tell whether a backendRef of a route leads to other routes."""
    return GroupKind(reference.get("group", ""), reference.get("kind", "Service")) == HTTP_ROUTE


def delegate(snapshot: Snapshot, route: Json, reference: Json, above: FilterReader, rule: RuleReader) -> Json | Unmet:
    """Return the backend of the file for a reference to routes, or why it leads nowhere. The group and what it leads
    to are noted in `above`, the reader of the rule that has the reference."""
    key = key_of(route)
    chain = (*above.chain, key)
    namespace, selector = reference.get("namespace") or key.namespace, reference["name"]
    below = [one for one in _below(snapshot, route, namespace, selector) if key_of(one[0]) not in chain]
    if not below:
        return Unmet("BackendNotFound", f"no HTTPRoute {namespace}/{selector} is below HTTPRoute {key}")
    if len(chain) > _MOST_DEPTH:
        return Unmet("UnsupportedValue", f"more than {_MOST_DEPTH} HTTPRoutes delegate to each other")
    # A group is there once for each way that leads to it: a loop is cut where the way comes round.
    name = f"{'>'.join(map(str, chain))}/{namespace}/{selector}"
    group = Fragment(key=group_key(name), place="routeGroups", value={"name": name})
    found = FilterReader(snapshot, route, 0, chain, above.budget)
    for child, parent in below:
        _add(found, group.key, child, parent, rule)
        if found.budget[0] < 0:
            return Unmet("UnsupportedValue", f"HTTPRoute {chain[0]} leads to more than {MOST_DELEGATED} rules")
    if not found.fragments:
        return Unmet("UnsupportedValue", f"HTTPRoutes {namespace}/{selector} have no rule that can be in force")
    above.fragments += [group, *found.fragments]
    above.delegated += found.delegated
    above.used += found.used
    above.backends += found.backends
    return {"routeGroup": name}


def _add(found: FilterReader, group: str, child: Json, parent: Json | None, rule: RuleReader) -> None:
    """Add the rules of a route to a group."""
    readers = []
    for index, entry in enumerate(child["spec"].get("rules") or ()):
        filters = found.below(child)
        value = rule(child, entry, filters)
        readers.append(filters)
        found.budget[0] -= 1
        if filters.invalid:
            continue
        found.used += filters.used
        found.backends += filters.backends
        found.delegated += filters.delegated
        place, order = f"{group}/{key_of(child)}.{index:02d}", (*seniority(child), index)
        fragment = Fragment(key=place, place="routes", value=value, parent=group, order=order)
        found.fragments += [*filters.fragments, fragment]
    found.delegated.append(Delegated(child, parent, tuple(readers)))


def _below(snapshot: Snapshot, route: Json, namespace: str, selector: str) -> Iterator[tuple[Json, Json | None]]:
    """Return the routes that a reference means and that may be below a route, with the parentRef that says so."""
    above = key_of(route)
    for one in _meant(snapshot, namespace, selector):
        references = one["spec"].get("parentRefs") or ()
        if not references:
            if permitted(snapshot, HTTP_ROUTE, above.namespace, HTTP_ROUTE, key_of(one)):
                yield one, None
            continue
        found = next((each for each in references if named(one, each) == (HTTP_ROUTE, above)), None)
        if found is not None:
            yield one, found


def _meant(snapshot: Snapshot, namespace: str, selector: str) -> Iterator[Json]:
    label, equals, value = selector.partition("=")
    for key, one in sorted(snapshot.kinds.get(HTTP_ROUTE, {}).items()):
        if key.namespace != namespace:
            continue
        labels = one["metadata"].get("labels") or {}
        if selector in (_ALL, key.name) or (equals and labels.get(label) == value):
            yield one
