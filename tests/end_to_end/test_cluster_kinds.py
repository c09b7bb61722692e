"""Kinds that the conformance suite has no test of, from a real API server to answers: TCPRoutes and InferencePools."""

from __future__ import annotations

import json
from collections.abc import Iterator

import grpc
import httpx
import pytest
import trustme
from cluster_lab import RunningCluster, built, kubernetes
from manifests import Json, endpoints, gateway, http_route, listener, made, service, tcp_route
from tests.end_to_end.acceptance_rig import GROUP, Lab, judged, namespaces, real_lab
from tests.end_to_end.ext_proc_rig import ProcessorPeer, picking
from tests.end_to_end.running import PATIENCE, free_port

__all__ = ["kubernetes"]
INFERENCE = "inference.networking.k8s.io"
POOLS = f"/apis/{INFERENCE}/v1/namespaces/shop/inferencepools/models"
PODS = "/api/v1/namespaces/shop/pods/model"
TCP_ROUTES = f"/apis/{GROUP}/v1alpha2/namespaces/shop/tcproutes/bytes"
FINE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# What the controller reads of a pool, without the checks of the extension's own definition.
POOL: Json = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {
        "name": f"inferencepools.{INFERENCE}",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api-inference-extension/pull/1173"},
    },
    "spec": {
        "group": INFERENCE, "scope": "Namespaced",
        "names": {"kind": "InferencePool", "listKind": "InferencePoolList", "plural": "inferencepools", "singular": "inferencepool"},
        "versions": [{
            "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
        }],
    },
}  # fmt: skip
# What the chart adds with `inferenceExtension.enabled`.
RULES = [
    {"apiGroups": [INFERENCE], "resources": ["inferencepools"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [INFERENCE], "resources": ["inferencepools/status"], "verbs": ["patch", "update"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
]


@pytest.fixture(scope="module")
def lab(kubernetes: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    built()
    kubernetes.define([POOL])
    with real_lab(kubernetes, tmp_path_factory.mktemp("kinds")) as found:
        found.apply(*namespaces("edge", "shop"))
        group = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "pools"}}
        subject = {"kind": "ServiceAccount", "name": "headgate", "namespace": "headgate-system"}
        bound = {"roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "pools"}, "subjects": [subject]}
        found.apply({**role, "rules": RULES}, {**role, "kind": "ClusterRoleBinding", **bound})
        found.served("shop/cart")
        found.start_local(HEADGATE_ENABLE_INFERENCE="true")
        yield found


def applied(lab: Lab, path: str, document: Json) -> None:
    about = {name: one for name, one in document["metadata"].items() if name in ("name", "namespace", "labels")}
    answer = lab._asked("PATCH", path, {**document, "metadata": about})
    assert answer.status_code in (200, 201), answer.text


def parents(lab: Lab, path: str) -> list[dict[str, tuple[str, str]]]:
    found = lab.client.get(path).json().get("status") or {}
    return [judged(one["conditions"]) for one in found.get("parents") or ()]


def judged_so(lab: Lab, path: str, wanted: dict[str, tuple[str, str]]) -> None:
    """Wait until the one parent of an object has conditions."""
    last: list[object] = []

    def holds() -> bool:
        last[:] = [parents(lab, path)]
        return last == [[wanted]]

    lab.until(holds, last)


def test_a_tcp_route_at_a_real_api_server(lab: Lab) -> None:
    port = free_port()
    lab.apply(gateway(listener("bytes", port=port, protocol="TCP"), name="edge/streams"))
    applied(lab, TCP_ROUTES, tcp_route(parent={"name": "streams", "namespace": "edge"}))
    judged_so(lab, TCP_ROUTES, FINE)
    lab.address_of("edge/streams")
    assert lab.answers("edge/streams", "any.test", 200, "/x", port).text.startswith("/x\n")
    status = lab.status("Gateway", "edge/streams")["listeners"][0]
    assert (status["attachedRoutes"], [one["kind"] for one in status["supportedKinds"]]) == (1, ["TCPRoute"])
    assert lab._asked("DELETE", TCP_ROUTES).status_code == 200
    lab.until(lambda: lab.answer("edge/streams", "any.test", "/x", port) is None)
    lab.until(lambda: lab.status("Gateway", "edge/streams")["listeners"][0]["attachedRoutes"] == 0)


def test_an_inference_pool_at_a_real_api_server(lab: Lab) -> None:
    pair = trustme.CA().issue_cert("picker.test")
    chain = b"".join(one.bytes() for one in pair.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(pair.private_key_pem.bytes(), chain)])
    picker = ProcessorPeer(credentials=credentials, host=lab.address)
    try:
        served(lab, picker)
    finally:
        picker.stop()


def served(lab: Lab, picker: ProcessorPeer) -> None:
    server = lab.peer.server_address[1]
    picker.react = picking(f"{lab.address}:{server}")
    lab.apply(
        service("shop/picker", {"port": 9002, "targetPort": picker.port}),
        endpoints("shop/picker-1", "picker", [lab.address], picker.port),
    )
    pod = {"containers": [{"name": "model", "image": "model"}], "automountServiceAccountToken": False}
    applied(lab, PODS, made("Pod", "shop/model", pod, "v1", labels={"app": "model"}))
    status = {"podIP": lab.address, "conditions": [{"type": "Ready", "status": "True"}]}
    answer = lab.client.patch(
        f"{PODS}/status", content=json.dumps({"status": status}), headers={"content-type": "application/merge-patch+json"}, timeout=PATIENCE
    )
    assert answer.status_code == 200, answer.text
    reference = {"name": "picker", "port": {"number": 9002}}
    spec = {"selector": {"matchLabels": {"app": "model"}}, "targetPorts": [{"number": server}], "endpointPickerRef": reference}
    applied(lab, POOLS, made("InferencePool", "shop/models", spec, f"{INFERENCE}/v1"))
    lab.apply(gateway(listener(port=lab.port), name="edge/main"))
    backend: Json = {"group": INFERENCE, "kind": "InferencePool", "name": "models"}
    lab.apply(http_route("shop/models", {"backendRefs": [backend]}))
    judged_so(lab, POOLS, FINE)
    lab.until(lambda: lab.parents("HTTPRoute", "shop/models") == [FINE])
    lab.address_of("edge/main")
    lab.answers("edge/main", "any.test", 200, "/v1/models")
    assert picker.seen
    # Nobody else may choose.
    picker.stop()
    lab.until(lambda: _status(lab.answer("edge/main", "any.test", "/v1/models")) >= 500)
    # A picker that there is not is told.
    other = {**spec, "endpointPickerRef": {"name": "gone", "port": {"number": 9002}}}
    applied(lab, POOLS, made("InferencePool", "shop/models", other, f"{INFERENCE}/v1"))
    judged_so(lab, POOLS, FINE | {"ResolvedRefs": ("False", "InvalidExtensionRef")})


def _status(answer: httpx.Response | None) -> int:
    return 0 if answer is None else answer.status_code
