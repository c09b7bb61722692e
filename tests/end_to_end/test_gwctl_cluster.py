"""`gwctl` at gateways of a cluster: through a stand-in for its API server, to the admin server of a real gateway."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from cluster_rig import StandIn, cluster, pod
from tests.end_to_end.gwctl_rig import DIRECT, gwctl

__all__ = ["cluster"]
PODS = "/api/v1/namespaces/shop/pods?" + urlencode({"labelSelector": "gateway.networking.k8s.io/gateway-name=edge"})


@pytest.fixture
def running(gateway: Callable[..., Any]) -> Any:
    return gateway(DIRECT, 1)


@pytest.fixture
def ask(cluster: StandIn) -> Callable[..., Any]:
    cluster.objects[PODS] = {"items": [pod("edge-2"), pod("edge-1")]}
    environ = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    return lambda *arguments: gwctl(*arguments, env=environ)


def test_the_configuration_of_a_gateway(running: Any, cluster: StandIn, ask: Callable[..., Any]) -> None:
    done = ask("proxy", "config", "all", "gateway/edge", "-n", "shop", "-p", str(running.admin))
    assert done.stderr == ""
    assert json.loads(done.stdout)["binds"][0]["key"] == f"bind/{running.port}"
    assert cluster.requests == [PODS, f"/api/v1/namespaces/shop/pods/edge-1/portforward?ports={running.admin}"]


def test_log_levels_of_all_pods(running: Any, ask: Callable[..., Any]) -> None:
    done = ask("proxy", "log", "gtw/edge.shop", "-p", str(running.admin), "--level", "debug")
    told = "current log level is debug\n"
    assert (done.returncode, done.stdout) == (0, f"edge-1.shop:\n{told}edge-2.shop:\n{told}")


def test_a_request_is_sent_and_traced(running: Any, ask: Callable[..., Any]) -> None:
    done = ask(
        "proxy", "trace", "gateway/edge", "--raw", "-p", str(running.admin), "--port", str(running.port), "--",
        "http://shop.test/cart",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kinds = [json.loads(line)["message"]["type"] for line in done.stdout.splitlines()]
    assert kinds[0] == "requestStarted"
    assert kinds[-1] == "requestFinished"
    assert "/cart" in done.stdout


def test_a_heap_profile(running: Any, ask: Callable[..., Any], tmp_path: Any) -> None:
    file = tmp_path / "heap.pb.gz"
    done = ask("proxy", "profile", "heap", "edge-1", "-p", str(running.admin), "-o", str(file))
    assert done.returncode == 1
    assert "pods/edge-1: 404 Not Found" in done.stderr
    done = ask("proxy", "profile", "heap", "gateway/edge", "-p", str(running.admin), "-o", str(file))
    # The gateway does not sample allocations.
    assert (done.returncode, done.stderr[:27]) == (0, "the profile has no samples:")
    assert file.read_bytes()[:2] == b"\x1f\x8b"


def test_failures_are_told(running: Any, cluster: StandIn, ask: Callable[..., Any]) -> None:
    done = ask("proxy", "config", "all", "gateway/edge", "-p", "1")
    assert done.stderr == "Error: port 1 of pod edge-1.shop: connection refused: Connection refused\n"
    cluster.refuse = (403, "pods is forbidden")
    done = ask("proxy", "log", "gateway/edge")
    assert done.stderr == "".join(
        f"{'Error: ' if name == 'edge-1' else ''}{name}.shop: port 15000 of pod {name}.shop: "
        "the API server refused: 403 Forbidden: pods is forbidden\n"
        for name in ("edge-1", "edge-2")
    )
    cluster.objects[PODS] = {"items": [pod("edge-1", "Pending")]}
    assert ask("proxy", "config", "be", "gateway/edge").stderr == "Error: pod is not running. Status=Pending\n"
