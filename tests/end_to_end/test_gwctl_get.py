"""`gwctl get` at the small API server, at a real one with the right to read alone, and at a gateway of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_lab import RunningCluster, kubernetes
from manifests import gateway as gateway_object
from manifests import gateway_backend, http_route, listener, made, own
from tests.end_to_end.controller_rig import InThread, kubeconfig_of
from tests.end_to_end.gwctl_rig import gwctl

from headgate.cluster.resources import kinds

__all__ = ["kubernetes"]

GROUP = "/apis/gateway.networking.k8s.io/v1"
OWN = "/apis/headgate.dev/v1alpha1"


def condition(type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip


PENDING = condition("Programmed", "False", "Pending", "no data plane has acknowledged generation 1 yet")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[InThread]:
    found = InThread()
    try:
        found.do(found.server.define, "gateway.networking.k8s.io", "v1", "gateways", "httproutes")
        found.do(found.server.define, "headgate.dev", "v1alpha1", "gatewaybackends")
        edge = gateway_object(listener("web"))
        edge["status"] = {"conditions": [condition("Accepted", "True", "Accepted", "yes"), PENDING], "addresses": [{"value": "10.0.0.1"}]}
        found.do(found.server.put, f"{GROUP}/gateways", edge)
        found.do(found.server.put, f"{GROUP}/httproutes", http_route("shop/cart", {"backendRefs": [own("away")]}))
        found.do(found.server.put, f"{OWN}/gatewaybackends", gateway_backend("shop/away", static={"host": "a.test", "port": 80}))
        kubeconfig_of(tmp_path, found.server.url)
        yield found
    finally:
        found.close()


def asked(kubeconfig: Path, *words: str) -> str:
    done = gwctl("-k", str(kubeconfig), "get", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_cluster_by_its_statuses(small: InThread, tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    table = asked(config, "gateways", "-n", "edge").splitlines()
    assert table[0].split() == ["NAMESPACE", "NAME", "CLASS", "ADDRESS", "ACKNOWLEDGED", "IN", "FORCE", "WHY", "LISTENERS"]
    assert table[1].split()[:8] == ["edge", "main", "headgate", "10.0.0.1", "-", "of", "1", "no"]
    assert "Pending: no data plane has acknowledged generation 1 yet" in table[1]
    (route,) = json.loads(asked(config, "routes", "-A", "-o", "json"))
    assert (route["name"], route["parent"], route["inForce"]) == ("cart", "Gateway edge/main", "no")
    (backend,) = yaml.safe_load(asked(config, "backends", "away", "-n", "shop", "-o", "yaml"))
    assert backend["usedBy"] == ["HTTPRoute shop/cart"]
    # Kinds that the cluster does not have.
    done = gwctl("-k", str(config), "get", "policies", "-A")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no policies\n")
    done = gwctl("-k", str(config), "get", "routes", "other", "-A")
    assert (done.returncode, done.stderr) == (1, "Error: no routes named other\n")
    assert all(one.startswith("GET ") for one in small.server.requests)


FILE = """
gateways:
  default: {port: {port}}
routes:
- name: shop
  hostnames: [a.test]
  backends: [{backend: cart}]
backends:
- {name: cart, host: "127.0.0.1:1"}
policies:
- name: {name: limit, namespace: default}
  target: {route: {name: shop, namespace: default}}
  policy: {localRateLimit: [{requests: 5, unit: minutes}]}
"""


@pytest.mark.parametrize("flag", [(), ("--local",)])
def test_a_gateway_of_this_machine(flag: tuple[str, ...], gateway: Callable[..., Any], tmp_path: Path) -> None:
    running = gateway(FILE, 1)
    environ = {**os.environ, "HOME": str(tmp_path)}
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        environ.pop(name, None)

    def rows(what: str) -> Any:
        done = gwctl("get", what, "-p", str(running.admin), "-o", "json", *flag, env=environ)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    (listening,) = rows("gateways")
    assert (listening["name"], listening["routes"], listening["address"]) == ("default", 1, f"[::]:{running.port}")
    (route,) = rows("routes")
    assert (route["name"], route["hostnames"], route["backends"]) == ("shop", ["a.test"], ["cart"])
    (backend,) = rows("backends")
    assert (backend["name"], backend["usedBy"], backend["type"]) == ("cart", ["default/shop"], "host")
    (policy,) = (one for one in rows("policies") if one["name"] == "default/limit")
    assert (policy["inForce"], policy["says"], policy["targets"]) == ("yes", ["localRateLimit"], ["route shop/default"])
    done = gwctl("get", "routes", "-p", str(running.admin), *flag, env=environ)
    assert done.stdout.splitlines()[0].split()[:3] == ["KIND", "NAMESPACE", "NAME"]


def test_a_real_cluster_with_the_right_to_list_alone(kubernetes: RunningCluster, tmp_path: Path) -> None:
    kubernetes.define([kinds.definition(one) for one in kinds.KINDS])
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    groups = ["gateway.networking.k8s.io", "headgate.dev"]
    rules = [{"apiGroups": groups, "resources": ["*"], "verbs": ["list"]}]
    kubernetes.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "reader"},
                      "rules": rules}, f"{rbac}/clusterroles")  # fmt: skip
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }  # fmt: skip
    kubernetes.apply(binding, f"{rbac}/clusterrolebindings")
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    kubernetes.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}, accounts)
    status, answer = kubernetes.send("POST", f"{accounts}/reader/token", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    assert status == 201, answer
    for document, path in (
        (made("Namespace", "shop", {}, "v1"), "/api/v1/namespaces"),
        (http_route("shop/cart", {"backendRefs": [own("away")]}), f"{GROUP}/namespaces/shop/httproutes"),
        (gateway_backend("shop/away", static={"host": "a.test", "port": 80}), f"{OWN}/namespaces/shop/gatewaybackends"),
    ):
        kept = {**document, "metadata": {key: one for key, one in document["metadata"].items() if key not in ("generation", "creationTimestamp")}}
        kubernetes.apply({key: one for key, one in kept.items() if one != {}}, path)
    document = yaml.safe_load(kubernetes.kubeconfig.read_text())
    for one in document["users"]:
        one["user"] = {"token": answer["status"]["token"]}
    config = tmp_path / "kubeconfig"
    config.write_text(yaml.safe_dump(document))
    (route,) = json.loads(asked(config, "routes", "-A", "-o", "json"))
    assert (route["name"], route["why"]) == ("cart", "no controller has said anything about it")
    (backend,) = json.loads(asked(config, "backends", "-n", "shop", "-o", "json"))
    assert (backend["name"], backend["usedBy"]) == ("away", ["HTTPRoute shop/cart"])
    assert kubernetes.send("DELETE", f"{rbac}/clusterrolebindings/reader")[0] == 200
