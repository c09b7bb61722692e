"""What a text contains besides its routes, to find out which routes depend on a change of it.

Routes depend on named backends, which they refer to (`Notes.backends`), on services with their workloads
(`Notes.services`), on route groups that they delegate to, directly or through others, and on targeted policies, which
hold for them (both in `Notes.used`) or come to hold for them. All else that is no route (process settings, gateways,
listeners, the sections `llm`, `mcp` and `ui`) may bear on every route: where it changes, the whole text is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

from headgate.config.check import Record
from headgate.config.context import Notes
from headgate.config.route_groups import mark_of
from headgate.config.services import Declared
from headgate.config.standalone import Standalone
from headgate.document.nodes import DocumentNode

# Sections that are compared by what they come to: ports, listeners and routes.
COMPARED_LATER: Final = ("binds", "routes")
BACKENDS: Final = "backends"
POLICIES: Final = "policies"
GROUPS: Final = "routeGroups"
SERVICES: Final = "services"
WORKLOADS: Final = "workloads"


class Dependent(Protocol):
    """A route that may depend on the rest. `full_names`: `namespace/name` of it and of those that it leads to, none
    where that is not known; `backends` and `services`: what it refers to; `notes`: the others.
    """

    @property
    def full_names(self) -> frozenset[str]: ...

    @property
    def backends(self) -> tuple[str, ...]: ...

    @property
    def services(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> Notes | None: ...


Depends = Callable[[Dependent], bool]


class WrittenPolicy(NamedTuple):
    """A targeted policy. `route` and `backend`: the route (`namespace/name`) or the named backend that it targets; of
    neither where it targets something else.
    """

    digest: bytes
    route: str | None
    backend: str | None


class Rest(NamedTuple):
    """`sections`: digests by key; `backends` and `groups`: index and digest by name; `policies`: in their order;
    `services`: what each came to, by `namespace/hostname`.
    """

    sections: dict[str, bytes]
    backends: dict[str, tuple[int, bytes]]
    policies: tuple[WrittenPolicy, ...]
    groups: dict[str, tuple[int, bytes]]
    services: dict[str, Declared]


def rest_of(standalone: Standalone) -> Rest:
    """Return what a text says beside its routes."""
    root = standalone.root
    entries = root.node.value
    assert isinstance(entries, dict)
    apart = (*COMPARED_LATER, BACKENDS, POLICIES, GROUPS, SERVICES, WORKLOADS)
    sections = {key: _digest(entry.node) for key, entry in entries.items() if key not in apart}
    backends = {
        one["name"].removeprefix("/"): (index, _digest(one.node)) for index, one in enumerate(root.records(BACKENDS))
    }
    groups = {one["name"]: (index, _digest(one.node)) for index, one in enumerate(root.records(GROUPS))}
    services = standalone.backends.services.declared()
    return Rest(sections, backends, tuple(map(_written_policy, root.records(POLICIES))), groups, services)


def dependents(old: Rest, new: Rest, outer: Notes) -> Depends | None:
    """Return a function that tells whether a route may have changed with the rest of the text; None where every route
    may have. `outer`: the notes of what is no route.
    """
    if old.sections != new.sections:
        return None
    names = old.backends.keys() | new.backends.keys()
    changed = {name for name in names if _digest_in(old, name) != _digest_in(new, name)}
    moved = {name for name in names - changed if old.backends[name][0] != new.backends[name][0]}
    routes: set[str] = set()
    # Of policies their paths, of groups what stands for them.
    groups = old.groups.keys() | new.groups.keys()
    paths = {mark_of(name) for name in groups if old.groups.get(name) != new.groups.get(name)}
    for index in range(max(len(old.policies), len(new.policies))):
        both = (old.policies[index : index + 1], new.policies[index : index + 1])
        if both[0] == both[1]:
            continue
        paths.add(f"{POLICIES}[{index}]")
        for policy in both[0] + both[1]:
            if policy.route is not None:
                routes.add(policy.route)
            elif policy.backend is not None:
                changed.add(policy.backend)
            else:
                return None
    services = _changed_services(old.services, new.services)
    if not (outer.backends.isdisjoint(changed) and outer.services.isdisjoint(services)):
        return None  # a policy or another backend refers to it

    def depends(route: Dependent) -> bool:
        if not (changed.isdisjoint(route.backends) and services.isdisjoint(route.services)):
            return True
        if routes and not ((names := route.full_names) and names.isdisjoint(routes)):
            return True
        # A warning may say where the backend stands.
        notes = route.notes
        return notes is not None and (
            not paths.isdisjoint(notes.used) or (bool(notes.warnings) and not moved.isdisjoint(route.backends))
        )

    return depends


def _changed_services(old: dict[str, Declared], new: dict[str, Declared]) -> set[str]:
    """Return what parts refer to services by that are new, gone or others: their keys and their host names."""
    found: set[str] = set()
    for key in old.keys() | new.keys():
        if old.get(key) != new.get(key):
            found.add(key)
            found.update(one[0].hostname for one in (old.get(key), new.get(key)) if one is not None)
    # Of several services of a host name, the first one that has the port is meant.
    before, after = _by_host(old), _by_host(new)
    return found | {name for name in before.keys() & after.keys() if before[name] != after[name]}


def _by_host(services: dict[str, Declared]) -> dict[str, list[str]]:
    """Return the keys of the services of each host name, in their order."""
    found: dict[str, list[str]] = {}
    for key, (service, _) in services.items():
        found.setdefault(service.hostname, []).append(key)
    return found


def _digest_in(rest: Rest, name: str) -> bytes | None:
    found = rest.backends.get(name)
    return None if found is None else found[1]


def _written_policy(record: Record) -> WrittenPolicy:
    [(kind, target)] = record["target"].values.items()
    route = backend = None
    if kind == "route":
        route = f"{target['namespace']}/{target['name']}"
    elif kind == "backend" and "backend" in target:
        backend = target["backend"]["name"]
    return WrittenPolicy(_digest(record.node), route, backend)


def _digest(node: DocumentNode) -> bytes:
    """Return a digest of all that a reader sees of a node but where it stands."""
    return hashlib.sha256(repr(_written(node)).encode("utf-8", "surrogatepass")).digest()


def _written(node: DocumentNode) -> Any:
    value = node.value
    if isinstance(value, list):
        return [_written(item) for item in value]
    if isinstance(value, dict):
        return {key: _written(entry.node) for key, entry in value.items()}
    return (value, node.loose, node.expanded)
