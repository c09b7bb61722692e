"""The objects of Gateways, against golden files (HEADGATE_REGOLD=1 writes them)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from deploy_cases import CASES, SESSION_KEY, SETTINGS, edge, parameters
from manifests import Json, gateway_class, listener, made, own

from headgate.cluster.deploy.naming import MOST
from headgate.cluster.deploy.objects import rendered
from headgate.cluster.deploy.outcome import DeployRefused, NoUsablePort
from headgate.cluster.deploy.parameters import merged_parameters
from headgate.cluster.snapshot import GATEWAY, Snapshot
from headgate.document.write import write

GOLDEN = Path(__file__).parents[3] / "golden" / "cluster" / "deploy"


def objects_of(*documents: Json) -> list[Json]:
    snapshot = Snapshot.of([gateway_class(), *documents])
    [one] = snapshot.oldest_first(GATEWAY)
    return rendered(snapshot, one, SETTINGS, SESSION_KEY, merged_parameters(snapshot, one, SETTINGS))


def of_kind(kind: str, documents: list[Json]) -> Any:
    return next(one for one in documents if one["kind"] == kind)


def container(documents: list[Json], kind: str = "Deployment") -> Any:
    return of_kind(kind, documents)["spec"]["template"]["spec"]["containers"][0]


def variables(documents: list[Json]) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in container(documents)["env"]}


@pytest.mark.parametrize("name", CASES)
def test_objects_are_the_golden_ones(name: str) -> None:
    file = GOLDEN / f"{name}.yaml"
    found = objects_of(*CASES[name])
    if os.environ.get("HEADGATE_REGOLD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("---\n".join(write(one) for one in found))
    assert list(yaml.safe_load_all(file.read_text())) == found


def test_a_deployment_says_no_number_of_replicas() -> None:
    assert "replicas" not in of_kind("Deployment", objects_of(edge()))["spec"]


def test_variables_of_both_layers_keep_their_order() -> None:
    names = [one["name"] for one in container(objects_of(*CASES["both-layers"]))["env"]]
    told = variables(objects_of(*CASES["both-layers"]))
    assert (told["B"], told["C"], told["RUST_LOG"]) == ("gateway", "gateway", "debug")
    assert "A" not in told
    assert names[-2:] == ["B", "C"]
    assert names.index("RUST_LOG") < names.index("SESSION_KEY")


def test_a_session_key_of_the_environment_leaves_ours_out() -> None:
    found = objects_of(*CASES["typed"])
    assert [one["kind"] for one in found].count("Secret") == 0
    template = of_kind("Deployment", found)["spec"]["template"]
    assert "checksum/session-key" not in template["metadata"]["annotations"]
    assert variables(found)["SESSION_KEY"] == "f" * 64


def test_levels_of_raw_configuration_are_not_hidden() -> None:
    raw = {"config": {"logging": {"level": "debug"}}}
    assert "RUST_LOG" not in variables(objects_of(edge(refers="a"), parameters("edge/a", rawConfig=raw)))
    typed = parameters("edge/a", rawConfig=raw, logging={"level": "warn"})
    assert variables(objects_of(edge(refers="a"), typed))["RUST_LOG"] == "warn"


def test_pods_change_with_what_they_read_once() -> None:
    def sums(*documents: Json) -> dict[str, str]:
        about = of_kind("Deployment", objects_of(*documents))["spec"]["template"]["metadata"]["annotations"]
        return {key: value for key, value in about.items() if key.startswith("checksum/")}

    plain, other = sums(edge()), sums(edge(refers="a"), parameters("edge/a", rawConfig={"config": {"histograms": "both"}}))
    assert plain.keys() == other.keys() == {"checksum/config", "checksum/session-key", "checksum/xds-ca"}
    assert {key for key in plain if plain[key] != other[key]} == {"checksum/config"}


def test_names_are_short_enough() -> None:
    found = objects_of(*CASES["long-name"])
    assert {len(one["metadata"]["name"]) <= MOST for one in found if one["kind"] in ("Service", "Deployment")} == {True}
    service = of_kind("Service", found)
    assert service["metadata"]["name"].startswith("n" * 49 + "-")
    assert "--" not in service["metadata"]["name"]
    assert [one["port"] for one in service["spec"]["ports"]] == [443]


def listener_set(namespace: str, port: int) -> Json:
    spec = {"parentRef": {"name": "main", "namespace": "edge"}, "listeners": [{"name": "x", "port": port, "protocol": "HTTP"}]}
    return made("ListenerSet", f"{namespace}/more", spec)


@pytest.mark.parametrize(
    ("allowed", "ports"),
    [
        (None, [80]),
        ({"from": "Same"}, [80, 81]),
        ({"from": "All"}, [80, 81, 82]),
        ({"from": "Selector", "selector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}, [80, 82]),
    ],
)
def test_ports_of_listener_sets_that_are_allowed(allowed: Json | None, ports: list[int]) -> None:
    more = {} if allowed is None else {"allowedListeners": {"namespaces": allowed}}
    found = objects_of(edge(listener(), **more), listener_set("edge", 81), listener_set("shop", 82))
    assert [one["port"] for one in of_kind("Service", found)["spec"]["ports"]] == ports


def test_without_a_port_that_can_be_opened_there_is_nothing() -> None:
    with pytest.raises(NoUsablePort, match="15000, 15021"):
        objects_of(edge(listener("a", 15000), listener("b", 15021)))


def of_class(**reference: str) -> Json:
    found = gateway_class()
    found["spec"]["parametersRef"] = own("x", "GatewayParameters", **reference)
    return found


REFUSED = {
    "infrastructure.parametersRef: GatewayParameters edge/gone not found": [edge(refers="gone")],
    "infrastructure.parametersRef: ConfigMap is no GatewayParameters.headgate.dev": [
        edge(infrastructure={"parametersRef": {"group": "", "kind": "ConfigMap", "name": "a"}}),
    ],
    "GatewayClass headgate: parametersRef: a namespace is needed": [of_class(), edge()],
    "GatewayClass headgate: parametersRef: GatewayParameters system/x not found": [of_class(namespace="system"), edge()],
    "istio: certificates of a mesh's own authority are not supported; use spiffe, or set istio.enabled: false": [
        edge(refers="a"), parameters("edge/a", istio={"clusterId": "one"}),
    ],
    "infrastructure.parametersRef: GatewayParameters edge/a: overlay deployment does not fit the workload, which is a DaemonSet": [
        of_class(namespace="system"), parameters("system/x", workload={"kind": "DaemonSet"}), edge(refers="a"), parameters("edge/a", deployment={"spec": {}, "metadata": {}}),
    ],
    "GatewayClass headgate: parametersRef: GatewayParameters system/x: overlay daemonSet does not fit the workload, which is a Deployment": [
        of_class(namespace="system"), parameters("system/x", workload={"kind": "DaemonSet"}, daemonSet={"spec": {"minReadySeconds": 1}}),
        edge(refers="a"), parameters("edge/a", workload={"kind": "Deployment"}),
    ],
    "spec.addresses: a Service has one address, not 2": [edge(addresses=[{"value": "192.0.2.1"}, {"value": "192.0.2.2"}])],
    "spec.addresses: an IP address is needed": [edge(addresses=[{"type": "Hostname", "value": "a.test"}])],
    "annotation headgate.dev/internal-ports: 'web' is no port": [edge(metadata={"annotations": {"headgate.dev/internal-ports": "80, web"}})],
    "serviceAccount.spec.rules: one of automountServiceAccountToken, imagePullSecrets, secrets is expected": [
        edge(refers="a"), parameters("edge/a", serviceAccount={"spec": {"rules": []}}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_made_is_refused(message: str) -> None:
    with pytest.raises(DeployRefused) as refusal:
        objects_of(*REFUSED[message])
    assert str(refusal.value) == message


def test_a_mesh_that_is_switched_off_refuses_nobody() -> None:
    assert objects_of(edge(refers="a"), parameters("edge/a", istio={"enabled": False}))


def test_settings_can_name_the_parameters_of_a_class() -> None:
    import dataclasses

    settings = dataclasses.replace(SETTINGS, class_parameters={"headgate": {"namespace": "system", "name": "all"}})
    one = edge()
    snapshot = Snapshot.of([gateway_class(), one, parameters("system/all", image={"tag": "of-the-settings"})])
    assert merged_parameters(snapshot, one, settings).image.tag == "of-the-settings"
