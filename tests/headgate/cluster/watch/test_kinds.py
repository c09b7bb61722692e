"""Which kinds are read, and what is kept of them."""

from __future__ import annotations

from typing import Any

from headgate.cluster.deploy.naming import MANAGED_BY, MANAGER
from headgate.cluster.snapshot import ENDPOINT_SLICE, GATEWAY_CLASS, HTTP_ROUTE, POD, SECRET, SERVICE, ObjectKey
from headgate.cluster.watch.kinds import KINDS, OF_DEPLOYER, OF_INFERENCE, WatchedKind, kept

BY_KIND = {one.kind: one for one in (*KINDS, *OF_INFERENCE)}
METADATA: dict[str, Any] = {
    "name": "a", "namespace": "b", "uid": "u", "resourceVersion": "7", "generation": 2, "creationTimestamp": "t", "labels": {"l": "1"},
    "annotations": {"headgate.dev/mcp-path": "/x", "kubectl.kubernetes.io/last-applied-configuration": "{}", "plain": "y"},
    "managedFields": [{"manager": "m"}], "selfLink": "s",
}  # fmt: skip


def of(watched: WatchedKind, **more: Any) -> Any:
    return kept(watched, watched.api_version(), {"metadata": METADATA, **more})


def test_paths_are_those_of_the_api() -> None:
    key = ObjectKey("shop", "cart")
    assert BY_KIND[SERVICE].path() == "/api/v1/services"
    assert BY_KIND[SERVICE].path_of(key) == "/api/v1/namespaces/shop/services/cart"
    assert BY_KIND[HTTP_ROUTE].path_of(key) == "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/cart"
    assert BY_KIND[GATEWAY_CLASS].path_of(ObjectKey("", "h")) == "/apis/gateway.networking.k8s.io/v1/gatewayclasses/h"
    assert len({one.kind for one in KINDS}) == len(KINDS)


def test_only_what_is_read_is_kept() -> None:
    found = of(BY_KIND[HTTP_ROUTE], spec={"hostnames": ["h"]}, status={"parents": []}, more=1)
    assert found.document == {
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "spec": {"hostnames": ["h"]},
        "metadata": {"name": "a", "namespace": "b", "uid": "u", "generation": 2, "creationTimestamp": "t", "labels": {"l": "1"},
                     "annotations": {"headgate.dev/mcp-path": "/x"}},
    }  # fmt: skip
    assert found.version == "7"
    assert found.status == {"parents": []}
    assert of(BY_KIND[SECRET], data={"k": "v"}, type="Opaque").status is None


def test_of_services_and_slices_only_the_fields_that_count() -> None:
    service = of(BY_KIND[SERVICE], spec={"ports": [1], "sessionAffinity": "None"}, status={"loadBalancer": {}, "conditions": []})
    assert service.document["spec"] == {"ports": [1]}
    assert service.document["status"] == {"loadBalancer": {}}
    endpoint = {"addresses": ["1"], "hints": {}, "targetRef": {"kind": "Pod", "name": "p", "uid": "u"}}
    found = of(BY_KIND[ENDPOINT_SLICE], endpoints=[endpoint], ports=[2], addressType="IPv4")
    assert found.document["endpoints"] == [{"addresses": ["1"], "targetRef": {"kind": "Pod", "name": "p"}}]
    assert of(BY_KIND[ENDPOINT_SLICE], endpoints=None).document["endpoints"] == []


def test_of_what_was_deployed_the_metadata_and_what_tells_a_change() -> None:
    ours = {**METADATA, "labels": {MANAGED_BY: MANAGER}, "ownerReferences": [{"uid": "u"}]}
    watched = {one.kind.kind: one for one in OF_DEPLOYER}
    assert all(one.query == {"labelSelector": "app.kubernetes.io/managed-by=headgate"} for one in watched.values())
    deployment = kept(watched["Deployment"], "apps/v1", {"metadata": ours}).document
    assert watched["Deployment"].metadata
    assert set(deployment) == {"apiVersion", "kind", "metadata"}
    assert deployment["metadata"]["annotations"] == {"headgate.dev/mcp-path": "/x", "plain": "y"}
    assert deployment["metadata"]["ownerReferences"] == [{"uid": "u"}]
    assert "content" not in deployment["metadata"]
    bare = {name: one for name, one in ours.items() if name != "generation"}
    accounts = [
        kept(watched["ServiceAccount"], "v1", {"metadata": bare, "automountServiceAccountToken": value, "status": {"x": value}}).document
        for value in (False, True, False)
    ]
    assert accounts[0] == accounts[2] != accounts[1]
    assert "automountServiceAccountToken" not in accounts[0]
    # One of the same kind that is somebody else's costs no more than before.
    assert "content" not in of(BY_KIND[SERVICE], spec={}).document["metadata"]


def test_of_pods_only_where_they_are_and_whether_they_are_ready() -> None:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "t"}, {"type": "PodScheduled", "status": "True"}]
    found = of(BY_KIND[POD], spec={"containers": []}, status={"podIP": "10.0.0.1", "phase": "Running", "conditions": conditions})
    assert "spec" not in found.document
    assert found.document["status"] == {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}


def test_equal_short_texts_are_one_object() -> None:
    first = of(BY_KIND[HTTP_ROUTE], spec={"name": "".join(["x"] * 10)}).document["spec"]["name"]
    again = of(BY_KIND[HTTP_ROUTE], spec={"name": "".join(["x"] * 10)}).document["spec"]["name"]
    assert first is again
