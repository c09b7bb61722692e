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
    TCP_ROUTE,
    TLS_ROUTE,
    GroupKind,
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
from headgate.cluster.translate.fragments import Fragment, Json, assembled
from headgate.cluster.translate.gateway import CONTROLLER, Acknowledged, GatewayTranslation, is_own, translate
from headgate.cluster.translate.gateway_backends import named, status
from headgate.cluster.translate.gateway_tls import with_certificate
from headgate.cluster.translate.listener_sets import sets_by_gateway
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
    sets, routes = sets_by_gateway(snapshot), _by_gateway(snapshot)
    for gateway in snapshot.oldest_first(GATEWAY):
        if not is_own(snapshot, gateway):
            continue
        key = key_of(gateway)
        told = acknowledged.get(key, Acknowledged())
        found[key] = translate(snapshot, gateway, sets.get(key, []), routes.get(key, []), told)
        statuses += found[key].statuses
        for route, entries in found[key].parents.items():
            parents.setdefault(route, []).extend(entries)
    attached = policies(snapshot, [reach(key, one.fragments) for key, one in found.items()], CONTROLLER)
    used = {key: one.used | attached.used[key] for key, one in found.items()}
    connections = backend_tls(snapshot, used, CONTROLLER)
    gateways = {
        key: tuple(
            with_certificate(
                (
                    *one.fragments,
                    *attached.fragments[key],
                    *connections.fragments[key],
                    *named(snapshot, one.backends | attached.backends[key]),
                    *discovered(snapshot, used[key]),
                ),
                one.certificate,
            )
        )
        for key, one in found.items()
    }
    for (kind, key), entries in sorted(parents.items()):
        content = {"parents": sorted(entries, key=lambda one: by_reference(one["parentRef"]))}
        statuses.append(ObjectStatus(GroupKind(GATEWAY_API, kind), key, content))
    backends = [status(snapshot, one) for one in snapshot.oldest_first(GATEWAY_BACKEND)]
    return World(gateways, [*statuses, *backends, *attached.statuses, *connections.statuses])


def _by_gateway(snapshot: Snapshot) -> dict[ObjectKey, list[Json]]:
    """Return the routes that name each Gateway, the oldest first."""
    found: dict[ObjectKey, list[Json]] = {}
    kinds = (HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE, TCP_ROUTE)
    routes = [one for kind in kinds for one in snapshot.kinds.get(kind, {}).values()]
    for route in sorted(routes, key=lambda one: (seniority(one), kind_of(one))):
        references = route["spec"].get("parentRefs") or ()
        keys = (gateway_named(snapshot, route, one) for one in references)
        for key in dict.fromkeys(one for one in keys if one is not None):
            found.setdefault(key, []).append(route)
    return found


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
