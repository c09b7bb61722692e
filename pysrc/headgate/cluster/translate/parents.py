"""Which listeners a route attaches to, and why not to others.

https://gateway-api.sigs.k8s.io/reference/spec/#parentreference
"""

from __future__ import annotations

from typing import NamedTuple

from headgate.cluster.snapshot import GATEWAY, GATEWAY_API, GroupKind, ObjectKey, Snapshot, key_of, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.hostnames import served
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.selectors import selects


class Attachment(NamedTuple):
    """A listener with the host names that the route has there; empty: all of the listener."""

    listener: ListenerState
    hostnames: tuple[str, ...]


def gateway_named(route: Json, reference: Json) -> ObjectKey | None:
    """Return which Gateway a parentRef of a route names; None if it names something else."""
    if GroupKind(reference.get("group", GATEWAY_API), reference.get("kind", "Gateway")) != GATEWAY:
        return None
    return ObjectKey(reference.get("namespace") or key_of(route).namespace, reference["name"])


def attachments(
    snapshot: Snapshot, route: Json, reference: Json, gateway: Json, known: list[ListenerState]
) -> list[Attachment] | Unmet:
    """Return where a route attaches by one parentRef that names the Gateway; without any, why."""
    candidates = [one for one in known if reference.get("sectionName") in (None, one.name)]
    if not candidates:
        return Unmet("NoMatchingParent", f"sectionName {reference['sectionName']!r} not found")
    candidates = [one for one in candidates if reference.get("port") in (None, one.port)]
    if not candidates:
        return Unmet("NoMatchingParent", f"port {reference['port']} not found")
    kind = kind_of(route)
    allowed = [
        one for one in candidates
        if one.refused is None and kind in one.supported and allows(snapshot, one, route, key_of(gateway).namespace)
    ]  # fmt: skip
    if not allowed:
        names = ", ".join(one.name for one in candidates)
        message = f"{kind.kind}s of namespace {key_of(route).namespace} are not allowed by listeners {names}"
        return Unmet("NotAllowedByListeners", message)
    hostnames = route["spec"].get("hostnames") or ()
    found = [Attachment(one, common) for one in allowed if (common := served(hostnames, one.hostname)) is not None]
    if not found:
        message = (
            f"no listener of {', '.join(one.name for one in allowed)} has one of the host names {', '.join(hostnames)}"
        )
        return Unmet("NoMatchingListenerHostname", message)
    usable = [one for one in found if one.listener.accepted]
    if not usable:
        return Unmet("NoMatchingParent", f"listeners {', '.join(one.listener.name for one in found)} are not accepted")
    return usable


def allows(snapshot: Snapshot, listener: ListenerState, route: Json, namespace: str) -> bool:
    """Tell whether a listener of a Gateway in `namespace` takes routes of the route's namespace."""
    rule = (listener.spec.get("allowedRoutes") or {}).get("namespaces") or {}
    match rule.get("from", "Same"):
        case "All":
            return True
        case "Selector":
            return selects(rule.get("selector") or {}, snapshot.labels_of_namespace(key_of(route).namespace))
        case "Same":
            return key_of(route).namespace == namespace
        case _:
            return False
