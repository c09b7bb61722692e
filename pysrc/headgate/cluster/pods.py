"""Pods behind a resource that a command names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from headgate.cluster.api import ApiServer
from headgate.cluster.errors import ClusterError

# Kinds that own pods or are pods, with their short forms.
KINDS: Final[dict[str, tuple[str, ...]]] = {
    "gateway": ("gateway", "gateways", "gtw"),
    "service": ("service", "services", "svc"),
    "deployment": ("deployment", "deployments", "deploy"),
    "replicaset": ("replicaset", "replicasets", "rs"),
    "statefulset": ("statefulset", "statefulsets", "sts"),
    "daemonset": ("daemonset", "daemonsets", "ds"),
    "pod": ("pod", "pods", "po"),
}
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[-a-z0-9.]+)?\Z")
# The label that the deployer gives the pods of a Gateway.
GATEWAY_LABEL: Final = "gateway.networking.k8s.io/gateway-name"
GATEWAYS: Final = "/apis/gateway.networking.k8s.io/v1"
# Operators of `matchExpressions` as a label selector has them.
OPERATORS: Final = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


class Resource(NamedTuple):
    """A resource as a command names it. `namespace`: "" if the name has none."""

    kind: str
    name: str
    namespace: str

    @classmethod
    def parse(cls, text: str) -> Resource:
        """Return what `<pod>`, `<kind>/<name>`, either with `.<namespace>` behind it, means; raises ClusterError."""
        word, slash, name = text.partition("/")
        if not slash:
            word, name = "pod", text
        kind = next((kind for kind, words in KINDS.items() if word in words), None)
        if kind is None or not NAME.match(name):
            raise ClusterError(f'"{text}" does not refer to a supported pod resource')
        name, _, namespace = name.rpartition(".") if "." in name else (name, "", "")
        return cls(kind, name, namespace)


class Pod(NamedTuple):
    """A pod of the cluster. `phase`: as its status has it, such as `Running`."""
    name: str
    namespace: str
    phase: str

    @property
    def place(self) -> str:
        """`<pod>.<namespace>`, as headings and errors have it."""
        return f"{self.name}.{self.namespace}"

    def check_running(self) -> None:
        """Raise ClusterError unless the pod runs."""
        if self.phase != "Running":
            raise ClusterError(f"pod is not running. Status={self.phase}")


def pods_of(api: ApiServer, text: str | None, namespace: str | None) -> list[Pod]:
    """Return the pods behind a resource by name, at least one.

    text: see Resource.parse; None: the single Gateway of the namespace. namespace: for a name without one; None: the
    namespace of the kubeconfig context. Raises ClusterError.
    """
    chosen = namespace or api.access.namespace
    resource = _single_gateway(api, chosen) if text is None else Resource.parse(text)
    chosen = resource.namespace or chosen
    if resource.kind == "pod":
        found = [api.get(f"/api/v1/namespaces/{quote(chosen)}/pods/{quote(resource.name)}")]
    else:
        selector = _selector(api, resource, chosen)
        found = _items(api.get(f"/api/v1/namespaces/{quote(chosen)}/pods", {"labelSelector": selector}))
    if not found:
        raise ClusterError(f'no pods found for resource "{text or f"gateway/{resource.name}"}"')
    pods = [
        Pod(one["metadata"]["name"], one["metadata"]["namespace"], one.get("status", {}).get("phase", "Unknown"))
        for one in found
    ]
    return sorted(pods)


def _single_gateway(api: ApiServer, namespace: str) -> Resource:
    found = _items(api.get(f"{GATEWAYS}/namespaces/{quote(namespace)}/gateways"))
    if len(found) != 1:
        number = f"found {len(found)} Gateways" if found else "no Gateways found"
        raise ClusterError(f'{number} in namespace "{namespace}"; pass a resource explicitly')
    return Resource("gateway", found[0]["metadata"]["name"], "")


def _selector(api: ApiServer, resource: Resource, namespace: str) -> str:
    """Return the label selector of a resource's pods."""
    if resource.kind == "gateway":
        return f"{GATEWAY_LABEL}={resource.name}"
    labels: dict[str, str]
    rules: list[dict[str, Any]]
    if resource.kind == "service":
        spec = api.get(f"/api/v1/namespaces/{quote(namespace)}/services/{quote(resource.name)}").get("spec", {})
        labels, rules = spec.get("selector") or {}, []
    else:
        path = f"/apis/apps/v1/namespaces/{quote(namespace)}/{resource.kind}s/{quote(resource.name)}"
        found = api.get(path).get("spec", {}).get("selector") or {}
        labels, rules = found.get("matchLabels") or {}, found.get("matchExpressions") or []
    parts = [f"{key}={value}" for key, value in sorted(labels.items())] + [_rule(one) for one in rules]
    if not parts:
        raise ClusterError(f"{resource.kind}/{resource.name} in {namespace} selects no pods")
    return ",".join(parts)


def _rule(rule: Mapping[str, Any]) -> str:
    form = OPERATORS.get(rule.get("operator", ""))
    if form is None:
        raise ClusterError(f"unknown operator of a label selector: {rule.get('operator')}")
    return form.format(key=rule["key"], values=",".join(rule.get("values") or ()))


def _items(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = found.get("items") or []
    return [one for one in items if isinstance(one, dict)]
