"""All Gateways of this controller.

`python -m headgate.cluster.translate.everything FILE...` prints what manifests become.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_API,
    GATEWAY_BACKEND,
    GATEWAY_CLASS,
    GRPC_ROUTE,
    HTTP_ROUTE,
    GroupKind,
    ObjectKey,
    Snapshot,
    generation,
    key_of,
    kind_of,
    seniority,
)
from headgate.cluster.translate.conditions import ObjectStatus, holds
from headgate.cluster.translate.fragments import Fragment, Json, assembled
from headgate.cluster.translate.gateway import CONTROLLER, Acknowledged, GatewayTranslation, is_own, translate
from headgate.cluster.translate.gateway_backends import named, status
from headgate.cluster.translate.parents import gateway_named
from headgate.cluster.translate.policies import policies, reach
from headgate.cluster.translate.services import discovered


class World(NamedTuple):
    """The fragments of each Gateway, and the statuses of all objects that have one from this controller."""

    gateways: dict[ObjectKey, tuple[Fragment, ...]]
    statuses: list[ObjectStatus]


def everything(snapshot: Snapshot, acknowledged: Mapping[ObjectKey, Acknowledged]) -> World:
    """Translate all Gateways of own classes. `acknowledged`: what their data planes have said."""
    found: dict[ObjectKey, GatewayTranslation] = {}
    statuses = [
        _class_status(one)
        for one in snapshot.oldest_first(GATEWAY_CLASS)
        if one["spec"]["controllerName"] == CONTROLLER
    ]
    parents: dict[tuple[str, ObjectKey], list[Json]] = {}
    routes = _by_gateway(snapshot)
    for gateway in snapshot.oldest_first(GATEWAY):
        if not is_own(snapshot, gateway):
            continue
        key = key_of(gateway)
        found[key] = translate(snapshot, gateway, routes.get(key, []), acknowledged.get(key, Acknowledged()))
        statuses.append(found[key].status)
        for route, entries in found[key].parents.items():
            parents.setdefault(route, []).extend(entries)
    attached = policies(snapshot, [reach(key, one.fragments) for key, one in found.items()], CONTROLLER)
    gateways = {
        key: (
            *one.fragments,
            *attached.fragments[key],
            *named(snapshot, one.backends | attached.backends[key]),
            *discovered(snapshot, one.used | attached.used[key]),
        )
        for key, one in found.items()
    }
    for (kind, key), entries in sorted(parents.items()):
        statuses.append(
            ObjectStatus(GroupKind(GATEWAY_API, kind), key, {"parents": _in_their_order(snapshot, kind, key, entries)})
        )
    backends = [status(snapshot, one) for one in snapshot.oldest_first(GATEWAY_BACKEND)]
    return World(gateways, [*statuses, *backends, *attached.statuses])


def _by_gateway(snapshot: Snapshot) -> dict[ObjectKey, list[Json]]:
    """Return the routes that name each Gateway, the oldest first."""
    found: dict[ObjectKey, list[Json]] = {}
    routes = [one for kind in (HTTP_ROUTE, GRPC_ROUTE) for one in snapshot.kinds.get(kind, {}).values()]
    for route in sorted(routes, key=lambda one: (seniority(one), kind_of(one))):
        references = route["spec"].get("parentRefs") or ()
        for key in dict.fromkeys(named for one in references if (named := gateway_named(route, one)) is not None):
            found.setdefault(key, []).append(route)
    return found


def _in_their_order(snapshot: Snapshot, kind: str, key: ObjectKey, entries: list[Json]) -> list[Json]:
    """Return the entries of a route's status in the order of its parentRefs."""
    route = snapshot.find(GroupKind(GATEWAY_API, kind), *key)
    assert route is not None
    order = route["spec"]["parentRefs"]
    return sorted(entries, key=lambda one: order.index(one["parentRef"]))


def _class_status(gateway_class: Json) -> ObjectStatus:
    condition = holds("Accepted", "Accepted", "Successfully accepted GatewayClass")
    content = {"conditions": [condition.printed(generation(gateway_class))]}
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
