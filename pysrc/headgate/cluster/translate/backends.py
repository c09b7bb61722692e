"""References of routes to what they are sent to."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import SERVICE, GroupKind, ObjectKey, Snapshot, key_of, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.services import host, port_of

# In front of names of backends that do not exist.
UNRESOLVED: Final = "unresolved/"


class Target(NamedTuple):
    """The file's form of a destination, and the Service behind it.

    `says_protocol`: whether the port of the Service says which protocol is spoken there.
    """

    form: dict[str, Any]
    service: ObjectKey
    says_protocol: bool = False


def target(snapshot: Snapshot, route: Json, reference: Json) -> Target | Unmet:
    """Return where a backendRef leads, or why it leads nowhere."""
    kind = GroupKind(reference.get("group", ""), reference.get("kind", "Service"))
    if kind != SERVICE:
        return Unmet(
            "InvalidKind", f"backend {reference['name']}: {kind.kind} of group {kind.group!r} is not supported"
        )
    namespace = key_of(route).namespace
    key = ObjectKey(reference.get("namespace") or namespace, reference["name"])
    if not permitted(snapshot, kind_of(route), namespace, SERVICE, key):
        message = f"Service {key}: no ReferenceGrant lets {kind_of(route).kind}s of {namespace} refer to it"
        return Unmet("RefNotPermitted", message)
    service = snapshot.find(SERVICE, *key)
    if service is None:
        return Unmet("BackendNotFound", f"Service {key} not found")
    if service["spec"].get("type") == "ExternalName":
        return Unmet(
            "UnsupportedValue", f"Service {key} is an ExternalName, which may lead past what a ReferenceGrant allows"
        )
    port = reference.get("port")
    entry = port_of(service, port)
    if entry is None:
        return Unmet("BackendNotFound", f"Service {key} has no port {port}")
    form = {"service": {"name": f"{key.namespace}/{host(key)}", "port": port}}
    return Target(form, key, bool(entry.get("appProtocol")))


def nowhere(route: Json, reference: Json) -> dict[str, Any]:
    """Return the form of a reference that leads nowhere: a named backend that does not exist. Its requests get 500."""
    namespace = reference.get("namespace") or key_of(route).namespace
    return {"backend": f"{UNRESOLVED}{namespace}/{reference['name']}"}
