"""Kinds of objects that a Gateway is run with, and their paths at the API server."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, NamedTuple

from headgate.cluster.snapshot import GroupKind

Json = dict[str, Any]


class OwnedKind(NamedTuple):
    """`version` is the `apiVersion`; `plural` the name in paths."""

    version: str
    kind: str
    plural: str

    @property
    def group_kind(self) -> GroupKind:
        group, slash, _ = self.version.rpartition("/")
        return GroupKind(group if slash else "", self.kind)

    def folder(self, namespace: str) -> str:
        """Return the path of all objects of the kind in a namespace."""
        start = "/apis" if "/" in self.version else "/api"
        return f"{start}/{self.version}/namespaces/{namespace}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        return f"{self.folder(namespace)}/{name}"

    def document(self, metadata: Json, **more: Any) -> Json:
        return {"apiVersion": self.version, "kind": self.kind, "metadata": metadata, **more}


SERVICE_ACCOUNT: Final = OwnedKind("v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP: Final = OwnedKind("v1", "ConfigMap", "configmaps")
SECRET: Final = OwnedKind("v1", "Secret", "secrets")
SERVICE: Final = OwnedKind("v1", "Service", "services")
DEPLOYMENT: Final = OwnedKind("apps/v1", "Deployment", "deployments")
DAEMON_SET: Final = OwnedKind("apps/v1", "DaemonSet", "daemonsets")
DISRUPTION_BUDGET: Final = OwnedKind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
AUTOSCALER: Final = OwnedKind("autoscaling/v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
OWNED: Final = (
    SERVICE_ACCOUNT, CONFIG_MAP, SECRET, SERVICE, DEPLOYMENT, DAEMON_SET, DISRUPTION_BUDGET, AUTOSCALER,
)  # fmt: skip
# Those that are deleted when they are not wanted any more.
PRUNED: Final = (DEPLOYMENT, DAEMON_SET, DISRUPTION_BUDGET, AUTOSCALER)
BY_KIND: Final = {one.kind: one for one in OWNED}


def kind_of(document: Json) -> OwnedKind:
    """Return the kind of an object. Raises KeyError for one that nobody deploys."""
    return BY_KIND[document["kind"]]


_ABOUT: Final = frozenset(("apiVersion", "kind", "metadata", "status"))


def content_digest(document: Json) -> str:
    """Return what an object is compared by that has no generation: a digest of what it says, without its status."""
    content = {name: value for name, value in document.items() if name not in _ABOUT}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def path_of(document: Json) -> str:
    """Return the path of an object in the API."""
    about = document["metadata"]
    return kind_of(document).path(about["namespace"], about["name"])
