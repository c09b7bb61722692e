"""Which listeners a route attaches to, and why not to others.

https://gateway-api.sigs.k8s.io/reference/spec/#parentreference
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY,
    GATEWAY_API,
    LISTENER_SET,
    GroupKind,
    ObjectKey,
    Snapshot,
    key_of,
    kind_of,
)
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.hostnames import served
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.selectors import selects


class Attachment(NamedTuple):
    """A listener with the host names that the route has there; empty: all of the listener."""

    listener: ListenerState
    hostnames: tuple[str, ...]


def named(route: Json, reference: Json) -> tuple[GroupKind, ObjectKey]:
    """Return the kind and key of what a parentRef of a route, or of a ListenerSet, names."""
    kind = GroupKind(reference.get("group", GATEWAY_API), reference.get("kind", "Gateway"))
    return kind, ObjectKey(reference.get("namespace") or key_of(route).namespace, reference["name"])


def gateway_named(snapshot: Snapshot, route: Json, reference: Json) -> ObjectKey | None:
    """Return which Gateway a parentRef leads to, perhaps by a ListenerSet; None if it leads to none."""
    kind, key = named(route, reference)
    if kind == LISTENER_SET:
        found = snapshot.find(kind, *key)
        return None if found is None else gateway_of_set(found)
    return key if kind == GATEWAY else None


def named_by(found: Json) -> Iterator[tuple[GroupKind, ObjectKey]]:
    """Yield what a route, or a model, names as its parents."""
    return (named(found, one) for one in found["spec"].get("parentRefs") or ())


def gateway_of_set(found: Json) -> ObjectKey | None:
    """Return the Gateway that a ListenerSet is for."""
    kind, key = named(found, found["spec"]["parentRef"])
    return key if kind == GATEWAY else None


def attachments(
    snapshot: Snapshot, route: Json, reference: Json, known: list[ListenerState]
) -> list[Attachment] | Unmet:
    """Return where a route attaches by one parentRef to listeners of a Gateway and its sets; without any, why.

    One that names the Gateway is about the Gateway's own listeners alone.
    """
    parent = named(route, reference)
    known = [one for one in known if one.holder == parent]
    if not known:
        return Unmet("NoMatchingParent", f"{parent[0].kind} {parent[1]} has no listeners that are accepted")
    candidates = [one for one in known if reference.get("sectionName") in (None, one.name)]
    if not candidates:
        return Unmet("NoMatchingParent", f"sectionName {reference['sectionName']!r} not found")
    candidates = [one for one in candidates if reference.get("port") in (None, one.port)]
    if not candidates:
        return Unmet("NoMatchingParent", f"port {reference['port']} not found")
    kind = kind_of(route)
    allowed = [
        one for one in candidates
        if one.refused is None and kind in one.supported and allows(snapshot, one, route)
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


def allows(snapshot: Snapshot, listener: ListenerState, route: Json) -> bool:
    """Tell whether a listener takes routes of the route's namespace."""
    rule = (listener.spec.get("allowedRoutes") or {}).get("namespaces") or {}
    return inside(snapshot, rule, "Same", key_of(route).namespace, listener.namespace)


def inside(snapshot: Snapshot, rule: Json, default: str, namespace: str, own: str) -> bool:
    """Tell whether a rule such as `{from: Same}` lets a namespace in; `own` is that of the object with the rule."""
    match rule.get("from", default):
        case "All":
            return True
        case "Selector":
            return selects(rule.get("selector") or {}, snapshot.labels_of_namespace(namespace))
        case "Same":
            return namespace == own
        case _:
            return False
