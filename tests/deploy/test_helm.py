"""The Helm charts, the manifests made from them, and the images: what they say, and that a real API server takes it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ci import plain_manifests
from cluster_lab import RunningCluster, kubernetes

from headgate.cluster.deploy import chart
from headgate.cluster.deploy.permissions import CLUSTER, DEPLOYER, INFERENCE, LOCAL, rules

__all__ = ["kubernetes"]

ROOT = Path(__file__).parents[2]
CHARTS = ROOT / "deploy" / "helm"
MANIFESTS = ROOT / "deploy" / "manifests" / "headgate.yaml"
Json = dict[str, Any]
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/headgate-system/serviceaccounts",
    "Service": "/api/v1/namespaces/headgate-system/services",
    "ConfigMap": "/api/v1/namespaces/headgate-system/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/headgate-system/deployments",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/headgate-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/headgate-system/poddisruptionbudgets",
    "HorizontalPodAutoscaler": "/apis/autoscaling/v2/namespaces/headgate-system/horizontalpodautoscalers",
}
# Every value that changes what is rendered, each different from what the chart has.
EVERYTHING = """
imagePullSecrets: [{name: pull}]
commonLabels: {team: edge}
fullnameOverride: own
serviceAccount: {annotations: {role: reader}, name: account}
rbac: {gatewayNamespaces: [edge, shop]}
deploymentAnnotations: {a: "1"}
podAnnotations: {b: "2"}
podLabels: {c: "3"}
nodeSelector: {disk: fast}
tolerations: [{key: a, operator: Exists}]
affinity: {nodeAffinity: {}}
dnsConfig: {options: [{name: ndots, value: "2"}]}
image: {registry: registry.test, tag: v1}
controller:
  replicaCount: 3
  revisionHistoryLimit: 2
  priorityClassName: high
  logLevel: debug
  image: {tag: v2, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
  service: {type: NodePort, annotations: {d: "4"}, ports: {xds: 1, health: 2, metrics: 3}}
  extraEnv: [{name: E, value: "5"}]
  extraContainers: [{name: side, image: side}]
  extraVolumes: [{name: more, emptyDir: {}}]
  extraVolumeMounts: [{name: more, mountPath: /more}]
  xds: {mode: plaintext}
  strategy: {type: Recreate}
  podDisruptionBudget: {minAvailable: 1}
  horizontalPodAutoscaler: {maxReplicas: 4}
  verticalPodAutoscaler: {updatePolicy: {updateMode: "Off"}}
proxy: {image: {repository: mine, digest: "sha256:1111111111111111111111111111111111111111111111111111111111111111"}}
inferenceExtension: {enabled: true}
discoveryNamespaceSelectors: [{matchLabels: {a: b}}]
gatewayClassParametersRefs: {headgate: {namespace: system, name: all}}
gatewayClassName: other
istio: {enabled: true}
monitoring: {serviceMonitor: {enabled: true, labels: {m: "1"}}, proxy: {podMonitor: {enabled: true, labels: {p: "1"}}}, grafanaDashboard: {enabled: true}}
"""


@pytest.fixture(scope="module")
def helm() -> str:
    known = (os.environ.get("HEADGATE_HELM", ""), str(ROOT / "build" / "bin" / "helm"), "helm")
    found = next((path for one in known if one and (path := shutil.which(one))), None)
    if found is None:
        pytest.skip("no Helm: make helm builds it (needs Go and its module proxy)")
    return found


def manifests() -> list[Json]:
    return list(yaml.safe_load_all(MANIFESTS.read_text()))


def of_kind(documents: list[Json], kind: str, name: str = "headgate") -> Json:
    return next(one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name)


@pytest.fixture(scope="module")
def everything(helm: str, tmp_path_factory: pytest.TempPathFactory) -> list[Json]:
    values = tmp_path_factory.mktemp("helm") / "values.yaml"
    values.write_text(EVERYTHING)
    return plain_manifests.rendered(helm, "--values", str(values))


def test_the_template_of_the_roles_is_made_from_the_table() -> None:
    assert (CHARTS / "headgate" / chart.TEMPLATE).read_text() == chart.permissions_template()


def test_the_manifests_have_the_roles_of_the_table() -> None:
    known = manifests()
    assert of_kind(known, "ClusterRole")["rules"] == rules(CLUSTER)
    assert of_kind(known, "ClusterRole", "headgate-deployer")["rules"] == rules(DEPLOYER)
    assert of_kind(known, "Role")["rules"] == rules(LOCAL)


def test_nobody_may_do_anything_to_everything() -> None:
    for one in (*CLUSTER, *INFERENCE, *DEPLOYER, *LOCAL):
        assert "*" not in (one.group, *one.resources, *one.verbs)
    assert not {"escalate", "bind", "impersonate"} & {verb for one in (*CLUSTER, *DEPLOYER, *LOCAL) for verb in one.verbs}


def test_links_of_charts_lead_to_what_they_are_for() -> None:
    definitions = {one.name for one in (ROOT / "deploy" / "crds").iterdir()}
    templates = CHARTS / "headgate-crds" / "templates"
    assert {one.name for one in templates.iterdir()} == definitions
    for one in templates.iterdir():
        assert one.resolve() == ROOT / "deploy" / "crds" / one.name
        # Helm would take it for a template.
        assert "{{" not in one.read_text()
    assert (CHARTS / "headgate" / "dashboards" / "headgate.json").resolve() == ROOT / "deploy" / "grafana" / "headgate.json"


def test_charts_have_the_version_of_the_product() -> None:
    version = re.search(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    for name in ("headgate", "headgate-crds"):
        found = yaml.safe_load((CHARTS / name / "Chart.yaml").read_text())
        assert (found["version"], found["appVersion"]) == (version[1], version[1])


def test_helm_finds_no_fault(helm: str) -> None:
    for name in ("headgate", "headgate-crds"):
        done = subprocess.run([helm, "lint", "--strict", str(CHARTS / name)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_the_manifests_are_what_the_chart_makes(helm: str) -> None:
    assert manifests() == plain_manifests.plain(plain_manifests.rendered(helm))


def test_the_chart_of_the_resources_has_them_all(helm: str) -> None:
    command = [helm, "template", "resources", str(CHARTS / "headgate-crds")]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    files = sorted((ROOT / "deploy" / "crds").iterdir())
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    expected = {one["metadata"]["name"]: one for one in (yaml.load(file.read_text(), loader) for file in files)}
    assert {one["metadata"]["name"]: one for one in yaml.load_all(text, loader) if one} == expected


def test_every_value_of_the_chart_is_used(everything: list[Json]) -> None:
    assert not [one for one in everything if one["kind"] == "ClusterRoleBinding" and one["metadata"]["name"].endswith("-deployer")]
    places = [one["metadata"]["namespace"] for one in everything if one["kind"] == "RoleBinding" and one["roleRef"]["name"] == "own-deployer"]
    assert places == ["edge", "shop"]
    deployment = of_kind(everything, "Deployment", "own")
    assert "replicas" not in deployment["spec"]
    spec = deployment["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert container["image"] == "registry.test/headgate:v2@sha256:" + "0" * 64
    told = {one["name"]: one.get("value") for one in container["env"]}
    assert {name: told[f"HEADGATE_{name}"] for name in ("PROXY_IMAGE_REGISTRY", "PROXY_IMAGE_REPOSITORY", "PROXY_IMAGE_TAG", "PROXY_IMAGE_DIGEST")} == {
        "PROXY_IMAGE_REGISTRY": "registry.test", "PROXY_IMAGE_REPOSITORY": "mine", "PROXY_IMAGE_TAG": "v1", "PROXY_IMAGE_DIGEST": "sha256:" + "1" * 64,
    }  # fmt: skip
    assert told["HEADGATE_GATEWAY_CLASS_PARAMETERS_REFS"] == '{"headgate":{"name":"all","namespace":"system"}}'
    assert told["HEADGATE_DISCOVERY_NAMESPACE_SELECTORS"] == '[{"matchLabels":{"a":"b"}}]'
    assert (told["HEADGATE_XDS_MODE"], told["HEADGATE_XDS_SERVICE_PORT"], told["HEADGATE_LOG_LEVEL"], told["E"]) == ("plaintext", "1", "debug", "5")
    assert spec["serviceAccountName"] == of_kind(everything, "ServiceAccount", "account")["metadata"]["name"]
    assert (spec["priorityClassName"], spec["nodeSelector"], spec["dnsConfig"]["options"]) == ("high", {"disk": "fast"}, [{"name": "ndots", "value": "2"}])
    assert [one["name"] for one in spec["containers"]] == ["controller", "side"]
    assert of_kind(everything, "ClusterRole", "own")["rules"] == rules((*CLUSTER, *INFERENCE))
    assert {one["kind"] for one in everything} >= {"PodDisruptionBudget", "HorizontalPodAutoscaler", "VerticalPodAutoscaler", "ServiceMonitor", "PodMonitor", "ConfigMap"}
    assert {one["metadata"]["labels"]["team"] for one in everything} == {"edge"}


def check(server: RunningCluster, documents: list[Json]) -> None:
    """Have the server judge objects without keeping them; kinds of others are left out."""
    for one in documents:
        if one["kind"] not in PATHS:
            continue
        path = PATHS[one["kind"]].format(one["metadata"].get("namespace"))
        query = {"fieldManager": "tests", "force": "true", "dryRun": "All", "fieldValidation": "Strict"}
        status, answer = server.send("PATCH", f"{path}/{one['metadata']['name']}", one, **query)
        assert status in (200, 201), answer


@pytest.fixture(scope="module")
def server(kubernetes: RunningCluster) -> RunningCluster:
    for name in ("headgate-system", "edge", "shop"):
        kubernetes.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "/api/v1/namespaces")
    return kubernetes


def test_a_real_server_takes_the_manifests(server: RunningCluster) -> None:
    check(server, manifests())


def test_a_real_server_takes_the_chart_with_every_value(server: RunningCluster, everything: list[Json]) -> None:
    check(server, everything)
