"""What the controller may do at the API server: one table, which the manifests and the Helm chart are made from.

https://kubernetes.io/docs/reference/access-authn-authz/rbac/
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from headgate.cluster.deploy.owned_kinds import OWNED
from headgate.cluster.snapshot import GATEWAY_API, OWN

Json = dict[str, Any]
READ: Final = ("get", "list", "watch")
STATUS: Final = ("patch", "update")
_INFERENCE: Final = "inference.networking.k8s.io"
_OWN_KINDS: Final = ("gatewaybackends", "gatewaymodels", "gatewayparameters", "gatewaypolicies")
_ROUTES: Final = ("grpcroutes", "httproutes", "tcproutes", "tlsroutes")
_GATEWAY_KINDS: Final = ("backendtlspolicies", "gateways", "listenersets", *_ROUTES)


class Permission(NamedTuple):
    """`names`: of the only objects that it is about; none: all of the kind."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()

    def printed(self) -> Json:
        found: Json = {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}
        return {**found, "resourceNames": list(self.names)} if self.names else found


def _grouped(verbs: tuple[str, ...]) -> tuple[Permission, ...]:
    """Return permissions for all kinds that a gateway is run with, one for each API group."""
    groups: dict[str, list[str]] = {}
    for kind in OWNED:
        groups.setdefault(kind.group_kind.group, []).append(kind.plural)
    return tuple(Permission(group, tuple(sorted(plurals)), verbs) for group, plurals in groups.items())


# In the whole cluster: what is translated, and what is watched of what was deployed.
CLUSTER: Final = (
    Permission("", ("configmaps", "namespaces", "nodes", "pods", "secrets", "serviceaccounts", "services"), READ),
    Permission("discovery.k8s.io", ("endpointslices",), READ),
    Permission("apps", ("daemonsets", "deployments"), READ),
    Permission("autoscaling", ("horizontalpodautoscalers",), READ),
    Permission("policy", ("poddisruptionbudgets",), READ),
    Permission("apiextensions.k8s.io", ("customresourcedefinitions",), READ),
    Permission(GATEWAY_API, (*_GATEWAY_KINDS, "referencegrants"), READ),
    Permission(GATEWAY_API, tuple(f"{one}/status" for one in (*_GATEWAY_KINDS, "gatewayclasses")), STATUS),
    Permission(GATEWAY_API, ("gatewayclasses",), ("create", "get", "list", "patch", "update", "watch")),
    Permission(OWN, _OWN_KINDS, READ),
    Permission(OWN, tuple(f"{one}/status" for one in _OWN_KINDS), STATUS),
    Permission("authentication.k8s.io", ("tokenreviews",), ("create",)),
)
# Only where inference pools are used.
INFERENCE: Final = (
    Permission(_INFERENCE, ("inferencepools",), READ),
    Permission(_INFERENCE, ("inferencepools/status",), STATUS),
)
# In the whole cluster, or in the namespaces that may have gateways.
DEPLOYER: Final = (
    *_grouped(("create", "delete", "patch", "update")),
    Permission("", ("events",), ("create", "get", "patch")),
)
# In the controller's own namespace.
LOCAL: Final = (
    Permission("coordination.k8s.io", ("leases",), ("create", "get", "patch")),
    Permission("", ("secrets",), ("create",)),
    Permission("", ("configmaps",), ("create", "delete", "patch", "update")),
)


def rules(table: tuple[Permission, ...]) -> list[Json]:
    """Return the rules of a role, as RBAC has them."""
    return [one.printed() for one in table]
