"""Several replicas of the controller: one leads, and what it knows goes over to the next."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from cluster_lab import RunningCluster, built, kubernetes
from manifests import Json, gateway, http_route, listener
from tests.end_to_end.acceptance_rig import GROUP, Lab, namespaces, real_lab, small_lab
from tests.end_to_end.replicas_rig import Replicas, start_plane
from tests.end_to_end.running import PATIENCE, Gateway

__all__ = ["kubernetes"]
HELD = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
PROGRAMMED = ("True", "Programmed")


@pytest.fixture(params=["small", "real"])
def lab(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("replicas")
    with ExitStack() as stack:
        if request.param == "small":
            found = stack.enter_context(small_lab(folder))
        else:
            built()
            cluster: RunningCluster = request.getfixturevalue("kubernetes")
            found = stack.enter_context(real_lab(cluster, folder))
        found.apply(*namespaces("edge", "shop", "default"))
        found.served("shop/cart")
        yield found


def objects_of(lab: Lab) -> list[tuple[str, str, int]]:
    """Return all workloads, by name and identity, with the number of their specification."""
    found: list[Json] = []
    for plural in ("deployments", "daemonsets"):
        found += lab.client.get(f"/apis/apps/v1/{plural}").json()["items"]
    return [(one["metadata"]["name"], one["metadata"]["uid"], one["metadata"]["generation"]) for one in found]


def programmed(lab: Lab) -> Json:
    [found] = [one for one in lab.status("Gateway", "edge/main")["conditions"] if one["type"] == "Programmed"]
    return dict(found)


def test_the_next_leader_goes_on_where_the_last_one_ended(lab: Lab) -> None:
    """No. 13. One leader is killed, another ends by itself; statuses and routes go on, and nothing is deployed twice."""
    replicas = Replicas(lab)
    plane: Gateway | None = None
    try:
        for name in ("one", "two"):
            replicas.start(name)
        lab.apply(gateway(listener(port=lab.port), name="edge/main"))
        if not lab.strict:
            # The small server gives Services no address.
            lab.until(lambda: lab.get("Service", "edge/main"))
            lab.client.patch(
                "/api/v1/namespaces/edge/services/main", json={"spec": {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"]}},
                headers={"content-type": "application/merge-patch+json"},
            )  # fmt: skip
        lab.until(lambda: lab.get("Deployment", "edge/main") and lab.get("Service", "edge/main") and lab.get("ConfigMap", "edge/main-xds-ca"))
        plane = start_plane(lab, "edge/main", replicas.balancer.port, lab.folder / "plane")
        lab.until(lambda: lab.conditions("Gateway", "edge/main").get("Programmed") == PROGRAMMED, plane.log())
        workloads, since = objects_of(lab), programmed(lab)["lastTransitionTime"]
        assert len(workloads) == 1
        for turn, number in enumerate((signal.SIGKILL, signal.SIGTERM)):
            leader = replicas.lead()
            replicas.end(leader, number)
            name = f"shop/r{turn}"
            lab.apply(http_route(name, hostnames=(f"r{turn}.test",)))
            lab.until(lambda name=name: lab.parents("HTTPRoute", name) == [HELD])
            lab.until(lambda turn=turn: answered(lab, f"r{turn}.test") == 200, plane.log())
            assert replicas.lead() != leader
            replicas.start(f"{leader}-again")
        # It was never taken away.
        assert (programmed(lab)["status"], programmed(lab)["lastTransitionTime"]) == ("True", since)
        # The next generation is acknowledged where the leader hears it.
        lab.apply(gateway(listener(port=lab.port), listener("more", lab.port, hostname="more.test"), name="edge/main"))
        lab.until(lambda: (programmed(lab)["status"], programmed(lab).get("observedGeneration")) == ("True", 2))
        assert objects_of(lab) == workloads
        owners = lab.client.get(f"/apis/{GROUP}/v1/namespaces/edge/gateways/main").json()["status"]["listeners"]
        assert [one["attachedRoutes"] for one in owners] == [2, 0]
        changed_back(lab)
    finally:
        if plane is not None:
            plane.process.kill()
            plane.process.wait()
        replicas.close()


def changed_back(lab: Lab) -> None:
    """Somebody changes a workload and deletes an account: both are as they were, and nobody has touched the Gateway."""
    path = "/apis/apps/v1/namespaces/edge/deployments/main"
    patch = {"spec": {"template": {"spec": {"serviceAccountName": "thief"}}}}
    answer = lab.client.patch(path, json=patch, headers={"content-type": "application/merge-patch+json"})
    assert answer.json()["spec"]["template"]["spec"]["serviceAccountName"] == "thief"
    lab.until(lambda: lab.client.get(path).json()["spec"]["template"]["spec"]["serviceAccountName"] == "main")
    lab.delete("ServiceAccount", "edge/main")
    lab.until(lambda: lab.get("ServiceAccount", "edge/main"))


def answered(lab: Lab, host: str) -> int:
    try:
        return httpx.get(f"http://127.0.0.1:{lab.port}/", headers={"host": host}, timeout=PATIENCE).status_code
    except httpx.TransportError:
        return 0
