"""`headgate controller` as a process: at a small API server, and at a real one where there is one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_lab import RunningCluster, kubernetes
from manifests import gateway, gateway_class, http_route, made, service
from tests.end_to_end.controller_rig import SECONDS, InThread, RunningController, controller, kubeconfig_of
from tests.end_to_end.gwctl_rig import gwctl

from headgate.cluster.resources import kinds

__all__ = ["kubernetes"]
GROUP = "gateway.networking.k8s.io"
API = f"/apis/{GROUP}/v1"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[tuple[InThread, Path]]:
    found = InThread()
    server = found.server
    found.do(server.define, GROUP, "v1", "gatewayclasses", "gateways", "httproutes")
    for plural, document in (("gatewayclasses", gateway_class()), ("gateways", gateway()), ("httproutes", http_route())):
        found.do(server.put, f"{API}/{plural}", document)
    found.do(server.put, "/api/v1/services", service())
    kubeconfig = kubeconfig_of(tmp_path, server.url)
    try:
        yield found, kubeconfig
    finally:
        found.close()


def test_it_serves_and_writes_and_ends_cleanly(fake: tuple[InThread, Path], tmp_path: Path) -> None:
    api, kubeconfig = fake
    with controller(kubeconfig, tmp_path) as running:
        running.wait_ready()
        running.wait(lambda: api.do(api.server.get, f"{API}/httproutes", "shop/cart").get("status"))
        health = running.get(running.health, "/healthz")
        assert health is not None
        assert health.text == "ok\n"
        metrics = running.get(running.metrics, "/metrics")
        assert metrics is not None
        assert 'headgate_controller_objects{kind="HTTPRoute"} 1\n' in metrics.text
        assert "headgate_controller_leader 1\n" in metrics.text
        for path in ("/snapshots?pretty=", "/debug/snapshots", "/snapshots/krt"):
            shown = running.get(running.admin, path)
            assert shown is not None
            assert shown.json()["gateways"]["edge/main"][0] == "bind/80/edge/main"
            assert shown.json()["objects"]["HTTPRoute.gateway.networking.k8s.io"] == ["shop/cart"]
        for path in ("/", "/version", "/debug/tasks", "/debug/pprof/heap"):
            answer = running.get(running.admin, path)
            assert answer is not None
            assert answer.status_code == 200, path
        assert running.stop() == 0
        lease = api.do(api.server.get, "/apis/coordination.k8s.io/v1/leases", "default/headgate-headgate")
        assert lease["spec"]["holderIdentity"] == ""
        assert {one["component"] for one in running.lines()} >= {"gw/syncer", "gateway-controller"}
        assert not [one for one in running.lines() if one["level"] == "error"]


def test_a_level_of_one_component_changes_while_it_runs(fake: tuple[InThread, Path], tmp_path: Path) -> None:
    api, kubeconfig = fake
    with controller(kubeconfig, tmp_path) as running:
        running.wait_ready()
        done = gwctl("controller", "log", "--local", "-p", str(running.admin), "--set", "gw/translator=debug")
        assert done.stdout == "gw/syncer: info\ngw/translator: debug\ngateway-controller: info\ndeployer: info\ndefault: info\n"
        api.do(api.server.put, f"{API}/httproutes", http_route("shop/new", hostnames=("n.test",)))
        running.wait(lambda: any(one["level"] == "debug" for one in running.lines()))
        assert {one["component"] for one in running.lines() if one["level"] == "debug"} == {"gw/translator"}
        assert gwctl("controller", "log", "--local", "-p", str(running.admin)).stdout == done.stdout
        refused = running.get(running.admin, "/logging?level=nothing", "POST")
        assert refused is not None
        assert refused.status_code == 400
        assert gwctl("controller", "log", "--local", "-p", str(running.metrics)).returncode == 1


def test_it_is_not_ready_before_all_is_listed(fake: tuple[InThread, Path], tmp_path: Path) -> None:
    api, kubeconfig = fake
    api.do(api.server.lists.clear)
    with controller(kubeconfig, tmp_path) as running:
        running.wait(lambda: running.get(running.health, "/readyz") is not None)
        answer = running.get(running.health, "/readyz")
        assert answer is not None
        assert (answer.status_code, answer.text) == (503, "not synced\n")
        api.do(api.server.lists.set)
        running.wait_ready()


@pytest.mark.parametrize(("words", "variables", "told"), [
    ((), {"KUBECONFIG": "/nowhere"}, "headgate controller: kubeconfig: no such file: /nowhere\n"),
    (("--log-level", "loud"), {}, "HEADGATE_LOG_LEVEL: one of"),
    ((), {"HEADGATE_DISCOVERY_NAMESPACE_SELECTORS": "{}"}, "HEADGATE_DISCOVERY_NAMESPACE_SELECTORS: a list of objects"),
])  # fmt: skip
def test_what_is_wrong_is_told(fake: tuple[InThread, Path], words: tuple[str, ...], variables: dict[str, str], told: str) -> None:
    command = [sys.executable, "-m", "headgate.cli.main", "controller", *words]
    environ = {**os.environ, "KUBECONFIG": str(fake[1]), **variables}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 1
    assert told in done.stderr


def test_at_a_real_api_server(kubernetes: RunningCluster, tmp_path: Path) -> None:
    routes = f"{API}/namespaces/shop/httproutes"

    def parents(name: str) -> list[tuple[str, str]]:
        found = kubernetes.send("GET", f"{routes}/{name}")[1].get("status") or {}
        return [(one["type"], one["reason"]) for entry in found.get("parents") or () for one in entry["conditions"]]

    def stored(document: dict[str, Any]) -> dict[str, Any]:
        metadata = {name: one for name, one in document["metadata"].items() if name not in ("generation", "creationTimestamp")}
        return {name: one for name, one in {**document, "metadata": metadata}.items() if one != {}}

    for name in ("edge", "shop"):
        kubernetes.apply(stored(made("Namespace", name, {}, "v1")), "/api/v1/namespaces")
    kubernetes.apply(stored(gateway()), f"{API}/namespaces/edge/gateways")
    kubernetes.apply(stored(service("shop/cart", {"name": "web", "port": 8080})), "/api/v1/namespaces/shop/services")
    kubernetes.apply(stored(http_route()), routes)
    good = [("Accepted", "Accepted"), ("ResolvedRefs", "ResolvedRefs")]
    with controller(kubernetes.kubeconfig, tmp_path) as running, controller(kubernetes.kubeconfig, tmp_path) as second:
        running.wait_ready()
        second.wait_ready()
        # The class is made by the controller, and the Gateway is its own from then on.
        running.wait(lambda: parents("cart") == good)
        features = kubernetes.send("GET", f"{API}/gatewayclasses/headgate")[1]["status"]["supportedFeatures"]
        assert features == sorted(features, key=lambda one: one["name"])
        leader, other = (running, second) if b"_leader 1\n" in _scraped(running) else (second, running)
        assert b"_leader 0\n" in _scraped(other)
        # A kind whose definition comes later is read from then on.
        kubernetes.define([kinds.definition(kind) for kind in kinds.KINDS if kind.name == "GatewayBackend"])
        backend = made("GatewayBackend", "shop/away", {"static": {"host": "a.test", "port": 80}}, "headgate.dev/v1alpha1")
        path = "/apis/headgate.dev/v1alpha1/namespaces/shop/gatewaybackends"
        kubernetes.apply(stored(backend), path)
        running.wait(lambda: kubernetes.send("GET", f"{path}/away")[1].get("status"))
        # Another replica takes over and goes on writing.
        assert leader.stop() == 0
        kubernetes.apply(stored(http_route("shop/new", {"backendRefs": [{"name": "gone", "port": 1}]}, hostnames=("n.test",))), routes)
        other.wait(lambda: parents("new") == [("Accepted", "Accepted"), ("ResolvedRefs", "BackendNotFound")])
        kubernetes.send("DELETE", f"{routes}/new")
        listeners = lambda: kubernetes.send("GET", f"{API}/namespaces/edge/gateways/main")[1]["status"]["listeners"]  # noqa: E731
        other.wait(lambda: listeners()[0]["attachedRoutes"] == 1)
        assert other.stop() == 0
        assert not [one for one in (*running.lines(), *second.lines()) if one["level"] == "error"]


def _scraped(running: RunningController) -> bytes:
    answer = running.get(running.metrics, "/metrics")
    assert answer is not None
    return answer.content
