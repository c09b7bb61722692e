"""Pods behind a resource."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest
from cluster_rig import StandIn, cluster, pod

from headgate.cluster.errors import ClusterError
from headgate.cluster.pods import Pod, Resource, pods_of

__all__ = ["cluster"]
LABEL = "gateway.networking.k8s.io/gateway-name"
GATEWAYS = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/gateways"


@pytest.mark.parametrize(
    ("text", "resource"),
    [
        ("edge-1", ("pod", "edge-1", "")),
        ("edge-1.shop", ("pod", "edge-1", "shop")),
        ("gtw/edge.shop", ("gateway", "edge", "shop")),
        ("gateways/edge", ("gateway", "edge", "")),
        ("svc/a", ("service", "a", "")),
        ("deploy/a", ("deployment", "a", "")),
        ("rs/a", ("replicaset", "a", "")),
        ("sts/a", ("statefulset", "a", "")),
        ("ds/a", ("daemonset", "a", "")),
        ("po/a", ("pod", "a", "")),
    ],
)
def test_resources(text: str, resource: tuple[str, str, str]) -> None:
    assert Resource.parse(text) == resource


@pytest.mark.parametrize("text", ["secret/x", "gateway/", "/x", "Pod", "gateway/a/b", "a b", "gateway/-a"])
def test_what_is_no_resource(text: str) -> None:
    with pytest.raises(ClusterError, match=r"does not refer to a supported pod resource"):
        Resource.parse(text)


def listed(cluster: StandIn, selector: str, *names: str) -> None:
    path = f"/api/v1/namespaces/shop/pods?{urlencode({'labelSelector': selector})}"
    cluster.objects[path] = {"items": [pod(name) for name in names]}


def test_pods_of_a_gateway_come_by_its_label_and_sorted(cluster: StandIn) -> None:
    listed(cluster, f"{LABEL}=edge", "b", "a")
    assert pods_of(cluster.api(), "gateway/edge", None) == [Pod("a", "shop", "Running"), Pod("b", "shop", "Running")]
    assert pods_of(cluster.api(), "gtw/edge.shop", "other")[0].place == "a.shop"


def test_without_a_name_the_single_gateway_is_taken(cluster: StandIn) -> None:
    cluster.objects[GATEWAYS] = {"items": [{"metadata": {"name": "edge"}}]}
    listed(cluster, f"{LABEL}=edge", "a")
    assert [one.name for one in pods_of(cluster.api(), None, None)] == ["a"]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ((), 'no Gateways found in namespace "shop"; pass a resource explicitly'),
        (("a", "b"), 'found 2 Gateways in namespace "shop"; pass a resource explicitly'),
    ],
)
def test_several_gateways_or_none_ask_for_a_name(cluster: StandIn, names: tuple[str, ...], why: str) -> None:
    cluster.objects[GATEWAYS] = {"items": [{"metadata": {"name": name}} for name in names]}
    with pytest.raises(ClusterError, match=why):
        pods_of(cluster.api(), None, "shop")


SELECTORS: list[tuple[str, str, dict[str, Any], str]] = [
    ("svc/a", "/api/v1/namespaces/shop/services/a", {"selector": {"b": "1", "a": "2"}}, "a=2,b=1"),
    ("deploy/a", "/apis/apps/v1/namespaces/shop/deployments/a", {"selector": {"matchLabels": {"x": "y"}}}, "x=y"),
    ("sts/a", "/apis/apps/v1/namespaces/shop/statefulsets/a",
     {"selector": {"matchExpressions": [
         {"key": "k", "operator": "In", "values": ["v", "w"]}, {"key": "n", "operator": "NotIn", "values": ["o"]},
         {"key": "e", "operator": "Exists"}, {"key": "d", "operator": "DoesNotExist"}]}},
     "k in (v,w),n notin (o),e,!d"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "path", "spec", "selector"), SELECTORS)
def test_selectors_of_owners(cluster: StandIn, text: str, path: str, spec: dict[str, Any], selector: str) -> None:
    cluster.objects[path] = {"spec": spec}
    listed(cluster, selector, "a")
    assert [one.name for one in pods_of(cluster.api(), text, None)] == ["a"]


def test_faults(cluster: StandIn) -> None:
    listed(cluster, f"{LABEL}=edge")
    cluster.objects["/api/v1/namespaces/shop/services/a"] = {"spec": {}}
    for text, why in (
        ("gateway/edge", 'no pods found for resource "gateway/edge"'),
        ("svc/a", "service/a in shop selects no pods"),
        ("gone", "GET /api/v1/namespaces/shop/pods/gone: 404 Not Found: /api/v1/namespaces/shop/pods/gone not found"),
    ):
        with pytest.raises(ClusterError) as found:
            pods_of(cluster.api(), text, None)
        assert str(found.value) == why
    with pytest.raises(ClusterError, match=r"pod is not running. Status=Pending"):
        Pod("a", "shop", "Pending").check_running()
