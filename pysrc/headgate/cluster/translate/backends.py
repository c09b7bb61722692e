"""References of routes to what they are sent to."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import (
    GATEWAY_BACKEND,
    INFERENCE_POOL,
    SERVICE,
    GroupKind,
    ObjectKey,
    Snapshot,
    key_of,
    kind_of,
)
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.fragments import Json
from headgate.cluster.translate.gateway_backends import file_name, translate_backend
from headgate.cluster.translate.grants import permitted
from headgate.cluster.translate.inference_pools import pool_target
from headgate.cluster.translate.services import host, port_of

# In front of names of backends that do not exist.
_UNRESOLVED: Final = "unresolved/"
_KINDS: Final = (SERVICE, GATEWAY_BACKEND, INFERENCE_POOL)


class Target(NamedTuple):
    """The file's form of a destination, and the Service or GatewayBackend behind it; neither for an InferencePool.

    `says_protocol`: whether it is said which version of HTTP is spoken there. `of_routes`: policies that the file has
    at the routes to it. `rewritable`: a GatewayBackend whose requests may be rewritten by a transformation. `dynamic`:
    one whose place each request names.
    """

    form: dict[str, Any]
    service: ObjectKey | None = None
    says_protocol: bool = False
    backend: ObjectKey | None = None
    of_routes: Json = {}
    rewritable: bool = False
    dynamic: bool = False


def target(snapshot: Snapshot, route: Json, reference: Json) -> Target | Unmet:
    """Return where a backendRef leads, or why it leads nowhere."""
    kind = GroupKind(reference.get("group", ""), reference.get("kind", "Service"))
    namespace = key_of(route).namespace
    key = ObjectKey(reference.get("namespace") or namespace, reference["name"])
    if kind in _KINDS and not permitted(snapshot, kind_of(route), namespace, kind, key):
        message = f"{kind.kind} {key}: no ReferenceGrant lets {kind_of(route).kind}s of {namespace} refer to it"
        return Unmet("RefNotPermitted", message)
    return destination(snapshot, kind, key, reference.get("port"))


def destination(
    snapshot: Snapshot, kind: GroupKind, key: ObjectKey, port: int | None, callers: frozenset[ObjectKey] = frozenset()
) -> Target | Unmet:
    """Return what an object is as a destination, whoever refers to it. `callers`: see translate_backend."""
    if kind not in _KINDS:
        return Unmet("InvalidKind", f"backend {key.name}: {kind.kind} of group {kind.group!r} is not supported")
    found = snapshot.find(kind, *key)
    if found is None:
        return Unmet("BackendNotFound", f"{kind.kind} {key} not found")
    if kind == INFERENCE_POOL:
        return _pool(snapshot, key, found)
    return _backend(snapshot, key, found, callers) if kind == GATEWAY_BACKEND else _service(key, found, port)


def _pool(snapshot: Snapshot, key: ObjectKey, found: Json) -> Target | Unmet:
    reached = pool_target(snapshot, found)
    if isinstance(reached, Unmet):
        return Unmet("Invalid", f"InferencePool {key}: {reached.message}")
    return Target(reached.form, says_protocol=True)


def _backend(snapshot: Snapshot, key: ObjectKey, found: Json, callers: frozenset[ObjectKey]) -> Target | Unmet:
    made = translate_backend(snapshot, found, callers)
    if isinstance(made, Unmet):
        return Unmet("Invalid", f"GatewayBackend {key} is not accepted: {made.message}")
    # Of other kinds it is known what is spoken with them.
    dynamic = "dynamic" in made.form
    open_ended = "host" in made.form or dynamic
    says = not open_ended or "version" in made.form.get("policies", {}).get("http", {})
    # One transformation takes the place of another.
    rewritable = "host" in made.form and "transformations" not in made.form.get("policies", {})
    return Target(
        {"backend": file_name(key)},
        says_protocol=says,
        backend=key,
        of_routes=made.of_routes,
        rewritable=rewritable,
        dynamic=dynamic,
    )


def _service(key: ObjectKey, service: Json, port: int | None) -> Target | Unmet:
    if service["spec"].get("type") == "ExternalName":
        return Unmet(
            "UnsupportedValue", f"Service {key} is an ExternalName, which may lead past what a ReferenceGrant allows"
        )
    entry = port_of(service, port)
    if entry is None:
        return Unmet("BackendNotFound", f"Service {key} has no port {port}")
    form = {"service": {"name": f"{key.namespace}/{host(key)}", "port": port}}
    return Target(form, key, bool(entry.get("appProtocol")))


def nowhere(route: Json, reference: Json) -> dict[str, Any]:
    """Return the form of a reference that leads nowhere: a named backend that does not exist. Its requests get 500."""
    namespace = reference.get("namespace") or key_of(route).namespace
    return {"backend": f"{_UNRESOLVED}{namespace}/{reference['name']}"}
