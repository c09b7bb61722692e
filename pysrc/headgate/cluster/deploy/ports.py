"""Ports of a Gateway's Service."""

from __future__ import annotations

from typing import Any, Final

from headgate.cluster.deploy.outcome import DeployRefused, NoUsablePort
from headgate.cluster.snapshot import GATEWAY, GATEWAY_API, OWN, GroupKind, ObjectKey, Snapshot, key_of
from headgate.cluster.translate.listeners import RESERVED
from headgate.cluster.translate.selectors import selects

Json = dict[str, Any]
LISTENER_SET: Final = GroupKind(GATEWAY_API, "ListenerSet")
# Ports that are served inside of the gateway alone: numbers with commas between them.
INTERNAL: Final = f"{OWN}/internal-ports"
_MOST_PORT: Final = 65_535
# Of a port's name (RFC 6335).
_MOST_NAME: Final = 15


def named_by_sets(snapshot: Snapshot) -> set[ObjectKey]:
    """Return what ListenerSets name as their parents, whether they may or not."""
    found = set()
    for one in snapshot.kinds.get(LISTENER_SET, {}).values():
        parent = one["spec"].get("parentRef") or {}
        found.add(ObjectKey(parent.get("namespace") or key_of(one).namespace, str(parent.get("name"))))
    return found


def listener_sets(snapshot: Snapshot, gateway: Json) -> list[Json]:
    """Return the ListenerSets of a Gateway that it allows, the oldest first."""
    key = key_of(gateway)
    allowed = ((gateway["spec"].get("allowedListeners") or {}).get("namespaces")) or {}
    found = []
    for one in snapshot.oldest_first(LISTENER_SET):
        parent = one["spec"].get("parentRef") or {}
        namespace = key_of(one).namespace
        named = (
            parent.get("group", GATEWAY.group), parent.get("kind", GATEWAY.kind),
            parent.get("namespace", namespace), parent.get("name"),
        )  # fmt: skip
        if named == (*GATEWAY, *key) and _allows(snapshot, allowed, key.namespace, namespace):
            found.append(one)
    return found


def _allows(snapshot: Snapshot, allowed: Json, own: str, namespace: str) -> bool:
    origin = allowed.get("from", "None")
    if origin == "Selector":
        return selects(allowed.get("selector") or {}, snapshot.labels_of_namespace(namespace))
    return origin == "All" or (origin == "Same" and own == namespace)


def listener_ports(snapshot: Snapshot, gateway: Json) -> list[int]:
    """Return the distinct ports of a Gateway's listeners, those of its ListenerSets included, in their order."""
    holders = (gateway, *listener_sets(snapshot, gateway))
    found = [one for holder in holders for one in holder["spec"].get("listeners") or ()]
    return list(dict.fromkeys(int(one["port"]) for one in found if one.get("port")))


def internal_ports(gateway: Json) -> frozenset[int]:
    """Raises DeployRefused if the annotation is no list of ports."""
    text = (gateway["metadata"].get("annotations") or {}).get(INTERNAL) or ""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 6 and 0 < int(word) <= _MOST_PORT):
            raise DeployRefused(f"annotation {INTERNAL}: {word!r} is no port", "Invalid")
    return frozenset(map(int, words))


def service_ports(snapshot: Snapshot, gateway: Json, dummy: int) -> list[Json]:
    """Return the ports of the Service. Raises NoUsablePort if there are listeners but none that it could lead to.

    `dummy`: of a Gateway without listeners, so that its address stays.
    """
    asked = listener_ports(snapshot, gateway)
    left_out = {*RESERVED, *internal_ports(gateway)}
    usable = [port for port in asked if port not in left_out] if asked else [dummy]
    if not usable:
        raise NoUsablePort(f"no listener has a port that can be opened: {', '.join(map(str, asked))}")
    return [
        {"name": f"listener-{port}"[:_MOST_NAME], "port": port, "targetPort": port, "protocol": "TCP"}
        for port in usable
    ]
