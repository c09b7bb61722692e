"""All Gateways of this controller.

`python -m headgate.cluster.translate.everything FILE...` prints what manifests become.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Hashable, Iterator, Mapping, Set
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_API,
    GATEWAY_BACKEND,
    GATEWAY_CLASS,
    GATEWAY_MODEL,
    GRPC_ROUTE,
    HTTP_ROUTE,
    LISTENER_SET,
    SERVICE,
    TCP_ROUTE,
    TLS_ROUTE,
    GroupKind,
    ObjectIndex,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
    kind_of,
    seniority,
)
from headgate.cluster.translate.ancestors import by_reference
from headgate.cluster.translate.backend_tls import backend_tls
from headgate.cluster.translate.conditions import ObjectStatus, holds
from headgate.cluster.translate.deployed import Placed, Placement
from headgate.cluster.translate.features import SUPPORTED
from headgate.cluster.translate.fragments import Fragment, Json, assembled
from headgate.cluster.translate.gateway import CONTROLLER, Acknowledged, GatewayTranslation, is_own, translate
from headgate.cluster.translate.gateway_backends import called_by, named, status
from headgate.cluster.translate.gateway_tls import with_certificate
from headgate.cluster.translate.inference_pools import pool_fragments, pool_statuses
from headgate.cluster.translate.parents import gateway_of_set, named_by
from headgate.cluster.translate.places import Reach, reach
from headgate.cluster.translate.policies import policies
from headgate.cluster.translate.services import discovered

_NOTHING_SAID: Final = Acknowledged()
_NOT_THERE: Final = Placement()


class World(NamedTuple):
    """The fragments of each Gateway, and the statuses of all objects that have one from this controller: in groups,
    each the same list as long as nothing in it has changed."""

    gateways: dict[ObjectKey, tuple[Fragment, ...]]
    groups: dict[Hashable, list[ObjectStatus]]

    @property
    def statuses(self) -> list[ObjectStatus]:
        """All statuses."""
        return list(chain.from_iterable(self.groups.values()))


class CalledObjects(NamedTuple):
    """The Services and the GatewayBackends that a Gateway calls. `objects`: both, with their kinds."""

    services: frozenset[ObjectKey]
    backends: frozenset[ObjectKey]
    objects: frozenset[tuple[GroupKind, ObjectKey]]


class OwnGateway(NamedTuple):
    """A Gateway of an own class. `statuses`: of the routes that name no other; `parents`: by route the entries of those
    that do."""

    translation: GatewayTranslation
    statuses: list[ObjectStatus]
    parents: dict[tuple[str, ObjectKey], list[Json]]


def everything(
    snapshot: Snapshot,
    acknowledged: Mapping[ObjectKey, Acknowledged],
    deployed: Mapping[ObjectKey, Placed] | None = None,
    global_policies: str = "",
) -> World:
    """Translate all Gateways of own classes.

    `acknowledged`: what their data planes have said. `deployed`: what there is of each; None where nobody deploys.
    `global_policies`: a namespace whose GatewayPolicies may be about objects of all namespaces.
    """
    found: dict[ObjectKey, OwnGateway] = {}
    groups: dict[Hashable, list[ObjectStatus]] = {"classes": snapshot.remembered("classes", _class_statuses)}
    for key, gateway in snapshot.remembered("own gateways", _own).items():
        said = acknowledged.get(key, _NOTHING_SAID)
        there = None if deployed is None else deployed.get(key, _NOT_THERE)
        one = found[key] = snapshot.remembered(("gateway", key), _own_gateway, gateway, said, there)
        groups["gateway", key], groups["routes", key] = one.translation.statuses, one.statuses
    parents = [one.parents for one in found.values() if one.parents]
    groups["shared routes"] = snapshot.remembered("shared routes", _shared, parents)
    reached = [
        snapshot.remembered(("reach", key), _reach, key, one.translation.fragments) for key, one in found.items()
    ]
    attached = snapshot.remembered("policies", policies, reached, CONTROLLER, global_policies)
    calls = {
        key: snapshot.remembered(
            ("called", key), _called, one.translation.used, one.translation.backends,
            attached.used[key], attached.backends[key],
        )
        for key, one in found.items()
    }  # fmt: skip
    called = {key: one.objects for key, one in calls.items()}
    connections = snapshot.remembered("backend TLS", backend_tls, called, CONTROLLER)
    gateways: dict[ObjectKey, tuple[Fragment, ...]] = {}
    for key, one in found.items():
        more = [*attached.fragments[key], *connections.fragments[key]]
        gateways[key] = snapshot.remembered(("file", key), _complete, one.translation, more, calls[key])
    pools = {key: one.translation.pools for key, one in found.items()}
    groups["backends"] = snapshot.remembered("backends", _backend_statuses)
    groups["policies"], groups["backend TLS"] = attached.statuses, connections.statuses
    groups["pools"] = snapshot.remembered("pools", pool_statuses, pools, CONTROLLER)
    return World(gateways, groups)


def _own(snapshot: Snapshot) -> dict[ObjectKey, Json]:
    """Return the Gateways of own classes, the oldest first."""
    return {key_of(one): one for one in snapshot.oldest_first(GATEWAY) if is_own(snapshot, one)}


def _class_statuses(snapshot: Snapshot) -> list[ObjectStatus]:
    classes = snapshot.oldest_first(GATEWAY_CLASS)
    return [_class_status(one) for one in classes if one["spec"]["controllerName"] == CONTROLLER]


def _backend_statuses(snapshot: Snapshot) -> list[ObjectStatus]:
    found = snapshot.oldest_first(GATEWAY_BACKEND)
    return [snapshot.remembered(("backend", key_of(one)), status, one) for one in found]


def _shared(
    _snapshot: Snapshot, parents: list[dict[tuple[str, ObjectKey], list[Json]]]
) -> list[ObjectStatus]:
    """Return the statuses of routes that name several Gateways. `parents`: those of each Gateway."""
    found: dict[tuple[str, ObjectKey], list[Json]] = {}
    for of_gateway in parents:
        for route, entries in of_gateway.items():
            known = found.setdefault(route, [])
            # Two Gateways may lead to a route below another.
            known += [one for one in entries if all(one["parentRef"] != other["parentRef"] for other in known)]
    return [_route_status(route, entries) for route, entries in sorted(found.items())]


def _own_gateway(
    snapshot: Snapshot, gateway: Json, acknowledged: Acknowledged, deployed: Placed | None
) -> OwnGateway:
    key = key_of(gateway)
    sets = snapshot.indexed(_SETS, key)
    made = translate(snapshot, gateway, sets, _routes(snapshot, key, sets), acknowledged, deployed)
    statuses: list[ObjectStatus] = []
    parents: dict[tuple[str, ObjectKey], list[Json]] = {}
    for route, entries in made.parents.items():
        found = snapshot.find(_kind(route[0]), *route[1])
        assert found is not None
        references = found["spec"].get("parentRefs") or ()
        if len(entries) == len(references) and all(one.get("kind") != HTTP_ROUTE.kind for one in references):
            statuses.append(snapshot.remembered(("status", route), _status_of, route, entries))
        else:
            parents[route] = entries
    return OwnGateway(made, statuses, parents)


def _routes(snapshot: Snapshot, gateway: ObjectKey, sets: list[Json]) -> list[Json]:
    """Return the routes that name a Gateway or one of its ListenerSets, the oldest first."""
    places = [(GATEWAY, gateway), *((LISTENER_SET, key_of(one)) for one in sets)]
    found = {
        (kind_of(one), key_of(one)): one
        for place in places
        for index in _ROUTES
        for one in snapshot.indexed(index, place)
    }
    return sorted(found.values(), key=lambda one: (seniority(one), kind_of(one)))


def _reach(_snapshot: Snapshot, gateway: ObjectKey, fragments: tuple[Fragment, ...]) -> Reach:
    return reach(gateway, fragments)


def _called(
    snapshot: Snapshot, services: Set[ObjectKey], backends: Set[ObjectKey], *of_policies: Set[ObjectKey]
) -> CalledObjects:
    """Return what routes and policies of a Gateway call, and what these backends call in turn."""
    services_of_policies, backends_of_policies = of_policies
    more, known = called_by(snapshot, backends | backends_of_policies)
    used, behind = frozenset(services | services_of_policies | more), frozenset(known)
    objects = [*((SERVICE, one) for one in used), *((GATEWAY_BACKEND, one) for one in behind)]
    return CalledObjects(used, behind, frozenset(objects))


def _complete(
    snapshot: Snapshot, made: GatewayTranslation, policies: list[Fragment], calls: CalledObjects
) -> tuple[Fragment, ...]:
    """Return all fragments of a Gateway."""
    called = (
        *named(snapshot, calls.backends),
        *snapshot.remembered("services", discovered, calls.services),
        *pool_fragments(snapshot, made.pools),
    )
    return tuple(with_certificate((*made.fragments, *policies, *called), made.certificate))


def _gateway_of(listener_set: Json) -> Iterator[ObjectKey]:
    """Yield the Gateway that a ListenerSet names."""
    if (gateway := gateway_of_set(listener_set)) is not None:
        yield gateway


_ROUTES: Final = tuple(ObjectIndex(kind, named_by) for kind in (HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE, TCP_ROUTE))
_SETS: Final = ObjectIndex(LISTENER_SET, _gateway_of)


def _status_of(_snapshot: Snapshot, route: tuple[str, ObjectKey], entries: list[Json]) -> ObjectStatus:
    return _route_status(route, entries)


def _route_status(route: tuple[str, ObjectKey], entries: list[Json]) -> ObjectStatus:
    content = {"parents": sorted(entries, key=lambda one: by_reference(one["parentRef"]))}
    return ObjectStatus(_kind(route[0]), route[1], content)


def _kind(name: str) -> GroupKind:
    return GATEWAY_MODEL if name == GATEWAY_MODEL.kind else GroupKind(GATEWAY_API, name)


def _class_status(gateway_class: Json) -> ObjectStatus:
    condition = holds("Accepted", "Accepted", "Successfully accepted GatewayClass")
    content: dict[str, Any] = {
        "conditions": [condition.printed(generation(gateway_class))],
        "supportedFeatures": [{"name": name} for name in SUPPORTED],
    }
    return ObjectStatus(GATEWAY_CLASS, key_of(gateway_class), content)


def main(arguments: list[str]) -> int:
    """Print, as JSON, the file of each Gateway and all statuses for the manifests in the files given."""
    documents: list[Any] = []
    for name in arguments:
        documents += [one for one in yaml.safe_load_all(Path(name).read_text(encoding="utf-8")) if one]
    world = everything(Snapshot.of(documents), {})
    shown = {
        "gateways": {str(key): assembled(fragments) for key, fragments in world.gateways.items()},
        "statuses": [{"kind": one.kind.kind, "name": str(one.key), "status": one.content} for one in world.statuses],
    }
    sys.stdout.write(json.dumps(shown, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
