"""The deployer at a real API server: what it takes, what it keeps, who owns which field."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_calls import HttpCalls
from cluster_lab import RunningCluster, kubernetes
from deploy_cases import CASES, SESSION_KEY, SETTINGS, class_with, edge, parameters
from manifests import Json, gateway_class
from reconciler_rig import KEY, RunningDeployer

from headgate.cluster.deploy.deployer import Deployer
from headgate.cluster.deploy.local import LocalDeployer
from headgate.cluster.deploy.objects import rendered
from headgate.cluster.deploy.outcome import Deployed
from headgate.cluster.deploy.owned_kinds import OWNED, path_of
from headgate.cluster.deploy.parameters import merged_parameters
from headgate.cluster.deploy.settings import DeploySettings
from headgate.cluster.resources import kinds
from headgate.cluster.snapshot import GATEWAY, Snapshot

__all__ = ["kubernetes"]

ROOT = Path(__file__).parents[4]
GATEWAY_API = "/apis/gateway.networking.k8s.io/v1"
READ = {
    "Namespace": "/api/v1/namespaces",
    "GatewayClass": f"{GATEWAY_API}/gatewayclasses",
    "Gateway": f"{GATEWAY_API}/namespaces/edge/gateways",
    "GatewayParameters": "/apis/headgate.dev/v1alpha1/namespaces/{}/gatewayparameters",
}
SECRET = "/api/v1/namespaces/edge/secrets/main-session-key"
SERVICE = "/api/v1/namespaces/edge/services/main"
DEPLOYMENT = "/apis/apps/v1/namespaces/edge/deployments/main"
BUDGET = "/apis/policy/v1/namespaces/edge/poddisruptionbudgets/main"


@pytest.fixture(scope="module")
def server(kubernetes: RunningCluster) -> RunningCluster:
    kubernetes.define([kinds.definition(kind) for kind in kinds.KINDS])
    for name in ("edge", "system", "gold"):
        kubernetes.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, READ["Namespace"])
    kubernetes.apply(stored(gateway_class()), READ["GatewayClass"])
    return kubernetes


@pytest.fixture
def clean(server: RunningCluster) -> Iterator[RunningCluster]:
    """The server, without what a test has left: no garbage is collected here."""
    yield server
    for path in (READ["Gateway"], READ["GatewayParameters"].format("edge"), READ["GatewayParameters"].format("system")):
        server.send("DELETE", path)
    for kind in OWNED:
        for one in server.listed(kind.folder("edge")):
            server.send("DELETE", kind.path("edge", one["metadata"]["name"]))


def stored(document: Json) -> Json:
    """Return what a user writes: without what the server adds."""
    kept = copy.deepcopy(document)
    for name in ("generation", "creationTimestamp", "uid"):
        kept["metadata"].pop(name, None)
    return kept


def put(server: RunningCluster, *documents: Json) -> None:
    for one in documents:
        server.apply(stored(one), READ[one["kind"]].format(one["metadata"].get("namespace")))


def snapshot(server: RunningCluster, *, owned: bool = True) -> Snapshot:
    documents = server.listed(READ["GatewayClass"]) + server.listed(READ["Gateway"])
    for namespace in ("edge", "system"):
        documents += server.listed(READ["GatewayParameters"].format(namespace))
    for kind in OWNED if owned else ():
        documents += server.listed(kind.folder("edge"))
    return Snapshot.of(documents)


def read(server: RunningCluster, path: str) -> Any:
    status, found = server.send("GET", path)
    return found if status == 200 else None


def versions(server: RunningCluster) -> dict[str, str]:
    found = [one for kind in OWNED for one in server.listed(kind.folder("edge"))]
    return {path_of(one): one["metadata"]["resourceVersion"] for one in found}


def on_deployer(server: RunningCluster, steps: Callable[[RunningDeployer, HttpCalls], Awaitable[None]]) -> None:
    """Run steps with a deployer of their own, as after a restart of the controller."""

    async def whole() -> None:
        calls = HttpCalls(server.kubeconfig)
        async with RunningDeployer(lambda changed: Deployer(calls, SETTINGS, changed)) as running:
            await steps(running, calls)
        await calls.close()

    asyncio.run(whole())


def deploy(server: RunningCluster) -> tuple[Deployed, list[tuple[str, str]]]:
    """Let a new deployer do its work on what is there; return what it tells and what it has changed."""
    found: list[tuple[Deployed, list[tuple[str, str]]]] = []

    async def steps(running: RunningDeployer, calls: HttpCalls) -> None:
        running.deployer.want(snapshot(server))
        await running.idle()
        found.append((await running.result(), calls.changes()))

    on_deployer(server, steps)
    return found[0]


@pytest.mark.parametrize("name", CASES)
def test_the_server_takes_all_objects(server: RunningCluster, name: str) -> None:
    known = Snapshot.of([gateway_class(), *CASES[name]])
    [one] = known.oldest_first(GATEWAY)
    for document in rendered(known, one, SETTINGS, SESSION_KEY, merged_parameters(known, one, SETTINGS)):
        query = {"fieldManager": "tests", "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
        status, answer = server.send("PATCH", path_of(document), document, **query)
        assert status in (200, 201), answer


def test_a_second_pass_changes_nothing(clean: RunningCluster) -> None:
    put(clean, edge())
    first, _ = deploy(clean)
    assert first.refusal is None
    assert first.addresses[0]["value"] == read(clean, SERVICE)["spec"]["clusterIP"]
    before = versions(clean)
    assert len(before) == 6
    again, _ = deploy(clean)
    assert (again, versions(clean)) == (first, before)


def test_one_that_has_seen_its_work_applies_nothing(clean: RunningCluster) -> None:
    put(clean, edge())

    async def steps(running: RunningDeployer, calls: HttpCalls) -> None:
        running.deployer.want(snapshot(clean))
        await running.result()
        count = len(calls.changes())
        for _ in range(2):
            running.deployer.want(snapshot(clean))
            await running.idle()
        assert len(calls.changes()) == count
        # Somebody takes a port away.
        clean.send("PATCH", SERVICE, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "main"}, "spec": {"selector": {"app": "stolen"}}}, fieldManager="other", force="true")
        running.deployer.want(snapshot(clean))
        await running.idle()
        assert calls.changes()[count:] == [("apply", SERVICE)]

    on_deployer(clean, steps)


def test_the_session_key_is_stable(clean: RunningCluster) -> None:
    """Acceptance 8 of the reference."""
    put(clean, edge())
    deploy(clean)
    first = read(clean, SECRET)["data"]["key"]
    put(clean, edge(refers="a"), parameters("edge/a", logging={"level": "debug"}))
    deploy(clean)
    assert read(clean, SECRET)["data"]["key"] == first
    put(clean, parameters("edge/a", env=[{"name": "SESSION_KEY", "value": "0" * 64}]))
    deploy(clean)
    template = read(clean, DEPLOYMENT)["spec"]["template"]
    assert "checksum/session-key" not in template["metadata"]["annotations"]
    [key] = [one for one in template["spec"]["containers"][0]["env"] if one["name"] == "SESSION_KEY"]
    assert key == {"name": "SESSION_KEY", "value": "0" * 64}


def test_parameters_of_class_and_gateway(clean: RunningCluster) -> None:
    """Acceptance 7 of the reference."""
    put(
        clean, class_with("system/all"), edge(refers="a"),
        parameters(
            "system/all", env=[{"name": "A", "value": "class"}, {"name": "B", "value": "class"}], resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            podDisruptionBudget={"spec": {"minAvailable": 1}},
        ),
        parameters(
            "edge/a", env=[{"name": "B", "value": "gateway"}], resources={"limits": {"cpu": "2"}},
            deployment={"spec": {"template": {"spec": {"containers": [{"name": "headgate", "env": [{"name": "A", "$patch": "delete"}]}], "topologySpreadConstraints": [{"$patch": "replace"}]}}}},
        ),
    )  # fmt: skip
    deploy(clean)
    pod = read(clean, DEPLOYMENT)["spec"]["template"]["spec"]
    told = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    assert told["B"] == "gateway"
    assert "A" not in told
    assert pod["containers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}
    assert "topologySpreadConstraints" not in pod
    assert read(clean, BUDGET)["spec"]["minAvailable"] == 1
    put(clean, parameters("system/all", env=[{"name": "A", "value": "class"}]))
    deploy(clean)
    assert read(clean, BUDGET) is None
    assert read(clean, DEPLOYMENT) is not None
    put(clean, gateway_class())


def test_a_workload_of_the_other_kind_is_deleted(clean: RunningCluster) -> None:
    put(clean, edge(refers="a"), parameters("edge/a"))
    deploy(clean)
    put(clean, parameters("edge/a", workload={"kind": "DaemonSet"}))
    deploy(clean)
    assert read(clean, DEPLOYMENT) is None
    assert read(clean, DEPLOYMENT.replace("deployments", "daemonsets"))["metadata"]["ownerReferences"][0]["name"] == "main"


def test_fields_that_we_do_not_say_belong_to_others(clean: RunningCluster) -> None:
    put(clean, edge())
    deploy(clean)
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "main"}}
    scaled = {**about, "spec": {"replicas": 5}}
    image = {**about, "spec": {"template": {"spec": {"containers": [{"name": "headgate", "image": "stolen:1"}]}}}}
    for manager, document in (("autoscaler", scaled), ("somebody", image)):
        assert clean.send("PATCH", DEPLOYMENT, document, fieldManager=manager, force="true")[0] == 200
    deploy(clean)
    found = read(clean, DEPLOYMENT)
    assert found["spec"]["replicas"] == 5
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "headgate:0.1.0"
    managers = {one["manager"] for one in found["metadata"]["managedFields"] if one["operation"] == "Apply"}
    assert "headgate.dev/headgate" in managers
    # A variable that is not wanted any more goes, because we owned it.
    put(clean, edge(refers="a"), parameters("edge/a", env=[{"name": "GONE", "value": "1"}]))
    deploy(clean)
    put(clean, parameters("edge/a", shutdown={"max": 90}))
    deploy(clean)
    names = [one["name"] for one in read(clean, DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["env"]]
    assert "GONE" not in names


def test_a_service_of_somebody_else_is_not_taken(clean: RunningCluster) -> None:
    other = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "main", "namespace": "edge"}, "spec": {"selector": {"app": "shop"}, "ports": [{"port": 1}]}}
    clean.apply(other, "/api/v1/namespaces/edge/services")
    put(clean, edge())

    async def steps(running: RunningDeployer, calls: HttpCalls) -> None:
        running.deployer.want(snapshot(clean))
        found = await running.result()
        assert found.refusal is not None
        assert found.refusal.message == "Service edge/main is there already and does not belong to this Gateway"

    on_deployer(clean, steps)
    assert read(clean, SERVICE)["spec"]["selector"] == {"app": "shop"}


def controller_token(server: RunningCluster, *, only: str = "") -> str:
    """Give the controller the rights of the plain manifests, and return a token of it. `only`: a namespace that it may have gateways in."""
    manifests = list(yaml.safe_load_all((ROOT / "deploy" / "manifests" / "headgate.yaml").read_text()))
    api = "/apis/rbac.authorization.k8s.io/v1"
    for one in manifests:
        if one["kind"] == "Namespace":
            server.apply(one, READ["Namespace"])
        elif one["kind"] == "ServiceAccount":
            server.apply(one, "/api/v1/namespaces/headgate-system/serviceaccounts")
        elif one["kind"] == "ClusterRole":
            server.apply(one, f"{api}/clusterroles")
        elif one["kind"] == "ClusterRoleBinding" and only and one["roleRef"]["name"].endswith("-deployer"):
            server.send("DELETE", f"{api}/clusterrolebindings/{one['metadata']['name']}")
            server.apply({**one, "kind": "RoleBinding", "metadata": {"name": "gateways", "namespace": only}}, f"{api}/namespaces/{only}/rolebindings")
        elif one["kind"] == "ClusterRoleBinding":
            server.apply(one, f"{api}/clusterrolebindings")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    status, answer = server.send("POST", "/api/v1/namespaces/headgate-system/serviceaccounts/headgate/token", request)
    assert status == 201, answer
    token: str = answer["status"]["token"]
    return token


@pytest.mark.parametrize("only", ["", "edge", "system"])
def test_the_deployer_works_with_exactly_its_role(clean: RunningCluster, only: str) -> None:
    token = controller_token(clean, only=only)
    put(clean, edge(refers="a"), parameters("edge/a", podDisruptionBudget={"spec": {"minAvailable": 1}}))

    async def whole() -> Deployed:
        calls = HttpCalls(clean.kubeconfig, token)
        async with RunningDeployer(lambda changed: Deployer(calls, SETTINGS, changed)) as running:
            running.deployer.want(snapshot(clean))
            found = await running.result()
            put(clean, parameters("edge/a", workload={"kind": "DaemonSet"}))
            running.deployer.want(snapshot(clean))
            await running.idle()
        await calls.close()
        return found

    found = asyncio.run(whole())
    if only == "system":
        assert found.refusal is not None
        assert "cannot create resource" in found.refusal.message
        assert read(clean, SERVICE) is None
    else:
        assert found.refusal is None
        assert read(clean, BUDGET) is None
        assert read(clean, DEPLOYMENT) is None
        assert read(clean, DEPLOYMENT.replace("deployments", "daemonsets")) is not None
    for name in ("edge", "system"):
        clean.send("DELETE", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{name}/rolebindings/gateways")


def test_a_local_gateway_gets_a_token_that_the_server_knows(clean: RunningCluster) -> None:
    put(clean, edge())

    async def whole() -> str:
        calls = HttpCalls(clean.kubeconfig)
        settings = DeploySettings(xds_address="http://127.0.0.1:9")
        async with RunningDeployer(lambda changed: LocalDeployer(calls, settings, changed, "127.78.0.0/16")) as running:
            running.deployer.want(snapshot(clean))
            found = await running.result()
            assert found.refusal is None
            folder = running.deployer._folder  # type: ignore[attr-defined]
            token: str = (folder / "edge.main" / "xds-token").read_text()
        await calls.close()
        return token

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": asyncio.run(whole()), "audiences": ["headgate.dev/controller"]}}
    status, answer = clean.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert (status, answer["status"]["authenticated"]) == (201, True), answer
    assert answer["status"]["user"]["username"] == f"system:serviceaccount:{KEY.namespace}:{KEY.name}"
    assert read(clean, SERVICE)["spec"]["type"] == "ClusterIP"
