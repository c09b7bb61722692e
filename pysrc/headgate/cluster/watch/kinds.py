"""Which kinds are watched, where, and what is kept of their objects."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from headgate.cluster.deploy.naming import MANAGED_BY, MANAGER
from headgate.cluster.deploy.owned_kinds import (
    AUTOSCALER,
    DAEMON_SET,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    OWNED,
    SERVICE_ACCOUNT,
    OwnedKind,
    content_digest,
)
from headgate.cluster.snapshot import (
    CONFIG_MAP,
    ENDPOINT_SLICE,
    GATEWAY,
    GATEWAY_API,
    GATEWAY_BACKEND,
    GATEWAY_CLASS,
    GATEWAY_MODEL,
    GRPC_ROUTE,
    HTTP_ROUTE,
    INFERENCE_POOL,
    NAMESPACE,
    OWN,
    POD,
    REFERENCE_GRANT,
    SECRET,
    SERVICE,
    GroupKind,
    Json,
    ObjectKey,
)

# Longer texts are hardly ever the same in two objects.
_SHARED: Final = 64
_METADATA: Final = ("name", "namespace", "uid", "generation", "creationTimestamp", "deletionTimestamp")
# Annotations of other groups are for other programs.
_READ: Final = (OWN, GATEWAY_API)
# What kubectl keeps of an object in the object.
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OURS: Final = {"labelSelector": f"{MANAGED_BY}={MANAGER}"}
# Helm keeps its releases in Secrets of a megabyte.
_NO_RELEASES: Final = {"fieldSelector": "type!=helm.sh/release.v1"}


class WatchedKind(NamedTuple):
    """`versions`: those that are read, the best first. `fields`: what is kept beside the metadata. `optional`: there is
    the kind only while there is its CRD. `judged`: this controller writes its status. `query`: which objects are read.
    `metadata`: only metadata is requested.
    """

    kind: GroupKind
    plural: str
    versions: tuple[str, ...] = ("v1",)
    fields: tuple[str, ...] = ("spec",)
    namespaced: bool = True
    optional: bool = False
    judged: bool = False
    query: Mapping[str, str] = {}
    metadata: bool = False

    @property
    def definition(self) -> str:
        """The name of its CRD."""
        return f"{self.plural}.{self.kind.group}"

    def api_version(self, index: int = 0) -> str:
        version = self.versions[index]
        return f"{self.kind.group}/{version}" if self.kind.group else version

    def path(self, index: int = 0) -> str:
        """Return the path of the collection, in one of its versions."""
        return f"{'/apis' if self.kind.group else '/api'}/{self.api_version(index)}/{self.plural}"

    def path_of(self, key: ObjectKey, index: int = 0) -> str:
        space = f"/namespaces/{key.namespace}" if key.namespace else ""
        prefix, _, plural = self.path(index).rpartition("/")
        return f"{prefix}{space}/{plural}/{key.name}"


def _gateway_api(kind: str, plural: str, *versions: str, judged: bool = True) -> WatchedKind:
    return WatchedKind(GroupKind(GATEWAY_API, kind), plural, versions or ("v1",), optional=True, judged=judged)


def _own(kind: str, plural: str, judged: bool = True) -> WatchedKind:
    return WatchedKind(GroupKind(OWN, kind), plural, ("v1alpha1",), optional=True, judged=judged)


KINDS: Final = (
    WatchedKind(NAMESPACE, "namespaces", fields=(), namespaced=False),
    WatchedKind(SERVICE, "services", fields=("spec", "status")),
    WatchedKind(ENDPOINT_SLICE, "endpointslices", fields=("addressType", "endpoints", "ports")),
    WatchedKind(SECRET, "secrets", fields=("type", "data"), query=_NO_RELEASES),
    WatchedKind(CONFIG_MAP, "configmaps", fields=("data",)),
    WatchedKind(GATEWAY_CLASS, "gatewayclasses", namespaced=False, optional=True, judged=True),
    WatchedKind(GATEWAY, "gateways", optional=True, judged=True),
    WatchedKind(HTTP_ROUTE, "httproutes", optional=True, judged=True),
    WatchedKind(GRPC_ROUTE, "grpcroutes", optional=True, judged=True),
    WatchedKind(REFERENCE_GRANT, "referencegrants", ("v1beta1", "v1"), optional=True),
    _gateway_api("ListenerSet", "listenersets"),
    _gateway_api("TCPRoute", "tcproutes", "v1", "v1alpha2"),
    _gateway_api("TLSRoute", "tlsroutes", "v1", "v1alpha3"),
    _gateway_api("BackendTLSPolicy", "backendtlspolicies"),
    WatchedKind(GATEWAY_BACKEND, "gatewaybackends", ("v1alpha1",), optional=True, judged=True),
    _own("GatewayPolicy", "gatewaypolicies"),
    WatchedKind(GATEWAY_MODEL, "gatewaymodels", ("v1alpha1",), optional=True, judged=True),
    _own("GatewayParameters", "gatewayparameters", judged=False),
)


# Read only where pools of model servers are asked for: a cluster has many pods.
OF_INFERENCE: Final = (
    WatchedKind(INFERENCE_POOL, "inferencepools", optional=True, judged=True),
    WatchedKind(POD, "pods", fields=("status",)),
)


def _deployed(one: OwnedKind, metadata: bool) -> WatchedKind:
    version = one.version.rpartition("/")[2]
    return WatchedKind(one.group_kind, one.plural, (version,), fields=(), query=_OURS, metadata=metadata)


# Read only where gateways are deployed: what the deployer has made. Of those with a generation the metadata tells that
# somebody has changed them. Services, ConfigMaps and Secrets are among KINDS.
OF_DEPLOYER: Final = (
    _deployed(DEPLOYMENT, True), _deployed(DAEMON_SET, True), _deployed(DISRUPTION_BUDGET, True),
    _deployed(SERVICE_ACCOUNT, False), _deployed(AUTOSCALER, False),
)  # fmt: skip
_OWNED: Final = frozenset(one.group_kind for one in OWNED)


class Kept(NamedTuple):
    """What is kept of an object: what is translated, and separately, because it changes alone, its version and,
    where this controller writes it, its status."""

    document: Json
    version: str
    status: Json | None


def kept(watched: WatchedKind, api_version: str, found: Json) -> Kept:
    """Return what is kept of an object of the server."""
    about = found["metadata"]
    metadata = {name: _lean(about[name]) for name in _METADATA if name in about}
    if labels := about.get("labels"):
        metadata["labels"] = _lean(labels)
    ours = watched.kind in _OWNED and (labels or {}).get(MANAGED_BY) == MANAGER
    found_notes = (about.get("annotations") or {}).items()
    notes = {name: _lean(text) for name, text in found_notes if (ours and name != _LAST_APPLIED) or _is_read(name)}
    if ours:
        metadata["ownerReferences"] = _lean(about.get("ownerReferences") or [])
        if "generation" not in about and not watched.metadata:
            metadata["content"] = content_digest(found)
    if notes:
        metadata["annotations"] = notes
    document: Json = {"apiVersion": api_version, "kind": watched.kind.kind, "metadata": metadata}
    trim = _TRIMMED.get(watched.kind)
    for name in watched.fields:
        if name in found:
            document[name] = _lean(trim(name, found[name]) if trim else found[name])
    status = _lean(found.get("status") or {}) if watched.judged else None
    return Kept(document, about.get("resourceVersion", ""), status)


def _is_read(annotation: str) -> bool:
    return annotation.partition("/")[0] in _READ


def _lean(value: Any) -> Any:
    """Return a value in which equal short texts are one object."""
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _SHARED else value
    if isinstance(value, dict):
        return {name: _lean(one) for name, one in value.items()}
    return [_lean(one) for one in value] if isinstance(value, list) else value


def _some(value: Mapping[str, Any], *names: str) -> Json:
    return {name: value[name] for name in names if name in value}


def _service(name: str, value: Any) -> Any:
    if name == "status":
        return _some(value, "loadBalancer")
    return _some(value, "ports", "type", "externalName", "clusterIP", "clusterIPs", "selector")


def _pod(_name: str, value: Any) -> Any:
    ready = [_some(one, "type", "status") for one in value.get("conditions") or () if one["type"] == "Ready"]
    return {**_some(value, "podIP"), "conditions": ready}


def _endpoint_slice(name: str, value: Any) -> Any:
    if name != "endpoints":
        return value
    found = []
    for one in value or ():
        endpoint = _some(one, "addresses", "conditions", "zone", "nodeName")
        if "targetRef" in one:
            endpoint["targetRef"] = _some(one["targetRef"], "kind", "name")
        found.append(endpoint)
    return found


_TRIMMED: Final = {SERVICE: _service, ENDPOINT_SLICE: _endpoint_slice, POD: _pod}
