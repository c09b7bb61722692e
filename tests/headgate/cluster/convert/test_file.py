"""Files as resources, and resources as files: all examples and golden configurations come to the same or are told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from example_files import ENVIRON, lay_out

from headgate.cluster.convert.file import documents_of, to_file, to_resources
from headgate.cluster.convert.gateway import GatewayNames
from headgate.config.load import TextSource, load

ROOT = Path(__file__).parents[4]
FILES = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "tests" / "golden" / "config").glob("*.yaml")])
VARIABLES = {**ENVIRON, "KEY": "canary"}
# What has no form, by file: paths. All others are whole.
LOST: dict[str, set[str]] = {
    "agent-runtime.yaml": {"routes[1].backends[0].policies.a2a"},
    "binds.yaml": {"binds[0].listeners[1].routes[0].policies.requestHeaderModifier.set.:authority"},
    "backends.yaml": {
        "backends[0].policies.requestHeaderModifier", "backends[1].mcp.targets[0].mcp.backend",
        "routes[0].backends[0].policies.backendAuth", "routes[0].backends[0].policies.http",
        "routes[0].backends[3].backend", "routes[1].backends[0].backend",
    },
    "internal-ports.yaml": {
        "binds[0].listeners[0].routes[0].backends[0].internal", "binds[0].listeners[0].routes[1].backends[0].internal",
        "binds[1].mode",
    },
    "llm.yaml": {"llm.providers[0].params.baseUrl", "llm.models[2].provider.reference"},
    "config/llm.yaml": {
        "llm.models[2].params.hostOverride", "llm.models[2].params.pathOverride", "llm.models[3].provider.reference",
        "llm.models[4].provider",
    },
    "llm-failover.yaml": {"llm.models[0].streamTimeouts", "llm.models[1].defaults"},
    "llm-standalone-epp.yaml": {"routes[0].backends[0].policies.inferenceRouting"},
    "prompt-guards.yaml": {
        "llm.models[0].guardrails.request[1].rejection", "llm.models[0].guardrails.streaming.masks",
    },
    "mcp-own-port.yaml": {"mcp.targets[0].stdio"},
    "mcp-stdio.yaml": {"mcp.targets[0].stdio"},
    "oidc.yaml": {"routes[1].policies.oidc"},
    "openapi.yaml": {"mcp.targets[0].openapi"},
    # A Gateway has a listener.
    "config/process.yaml": {"config", "frontendPolicies"},
    "quickstart.yaml": {"mcp.targets[0].stdio", "llm.models[0].params.baseUrl"},
    "services.yaml": {"routes[0].backends[0].service.name", "services[0].hostname", "workloads[0].services"},
    # Its database stands beside the file.
    "stored-configuration.yaml": {"config (request_log.path)", "config (request_log.shown)"},
    # Connections without a host name.
    "tcp.yaml": {"tcpRoutes[0]", "tcpRoutes[1]"},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "files"
    shutil.copytree(ROOT / "examples", found)
    lay_out(found)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_comes_to_the_same_in_the_cluster(path: Path, folder: Path) -> None:
    copy = folder / path.name
    shutil.copy(path, copy)
    found = to_resources(str(copy), GatewayNames(), VARIABLES)
    lost = {one.path for one in found.losses}
    assert lost == LOST.get(f"{path.parent.name}/{path.name}", LOST.get(path.name, set()))
    for one in found.losses:
        assert one.why
        assert one.line > 0 or one.path.startswith("config (")
    # What a cluster stores: names that it takes, and nothing but JSON.
    assert documents_of([json.dumps(found.documents[0])])[0]["metadata"]["name"]
    assert yaml.safe_load(yaml.safe_dump(found.documents)) == found.documents


NAMES = GatewayNames()


def converted(folder: Path, text: str, names: GatewayNames = NAMES) -> Any:
    path = folder / "config.yaml"
    path.write_text(text)
    return to_resources(str(path), names, {})


ROUTE = """\
gateways: {edge: {port: 8080, listeners: [{name: web, hostname: a.test}]}}
routes:
- name: cart
  gateways: edge
  namespace: shop
  matches: [{path: {pathPrefix: /cart}, method: GET}]
  policies:
    authorization: {rules: [{allow: "request.path == '/a'"}, {deny: "request.path == '/b'"}]}
    localRateLimit: [{requests: 5, unit: minutes}]
    requestHeaderModifier: {set: {x-a: b}}
  backends: [{backend: cart, weight: 3}]
backends:
- name: cart
  host: cart.test:80
  policies: {backendAuth: {key: sk-1}}
"""


def test_a_route_has_its_policies_in_objects_of_its_namespace(tmp_path: Path) -> None:
    found = converted(tmp_path, ROUTE, GatewayNames("web", "infra", "mine"))
    assert found.losses == []
    kinds = [(one["kind"], one["metadata"]["namespace"], one["metadata"]["name"]) for one in found.documents]
    assert kinds == [
        ("Secret", "infra", "cart"), ("Gateway", "infra", "web"), ("GatewayBackend", "infra", "cart"), ("HTTPRoute", "shop", "cart"),
        ("GatewayPolicy", "shop", "cart"), ("GatewayPolicy", "shop", "cart-2"),
        ("ReferenceGrant", "infra", "httproute-of-shop-to-gatewaybackend"),
    ]  # fmt: skip
    secret, gateway, backend, route, first, second, _ = found.documents
    assert secret["data"] == {"Authorization": "c2stMQ=="}
    assert gateway["spec"] == {
        "gatewayClassName": "mine",
        "listeners": [
            {
                "name": "web",
                "port": 8080,
                "protocol": "HTTP",
                "hostname": "a.test",
                "allowedRoutes": {"namespaces": {"from": "All"}},
            }
        ],
    }
    assert backend["spec"] == {
        "static": {"host": "cart.test", "port": 80},
        "policies": {"auth": {"secretRef": {"name": "cart", "key": "Authorization"}}},
    }
    assert route["spec"]["rules"][0]["filters"][0]["type"] == "RequestHeaderModifier"
    assert route["spec"]["rules"][0]["backendRefs"] == [
        {"group": "headgate.dev", "kind": "GatewayBackend", "name": "cart", "namespace": "infra", "weight": 3}
    ]
    assert first["spec"]["traffic"]["rateLimit"] == {"local": [{"requests": 5, "unit": "Minutes"}]}
    assert (first["spec"]["traffic"]["authorization"]["action"], second["spec"]["traffic"]["authorization"]["action"]) == ("Allow", "Deny")


def test_resources_become_a_file_that_becomes_the_same_resources(tmp_path: Path) -> None:
    names = GatewayNames("web", "infra")
    documents = converted(tmp_path, ROUTE, names).documents
    file = to_file(documents, "infra/web")
    assert file.refused == []
    again = converted(tmp_path, file.text, names)
    assert again.losses == []
    assert [one["kind"] for one in again.documents].count("HTTPRoute") == 1


def test_settings_of_the_process_are_parameters_and_secrets_come_from_the_environment(tmp_path: Path) -> None:
    key = "ab" * 32
    text = f"config: {{session: {{key: {key}}}, workerThreads: 2, logging: {{fields: {{add: {{a: '\"$$x\"'}}}}}}}}\n"
    text += "gateways: {web: {port: 8080}}\n"
    found = converted(tmp_path, text)
    assert found.losses == []
    secret, parameters, gateway = found.documents
    assert (secret["kind"], list(secret["data"])) == ("Secret", ["CONFIG_SESSION_KEY"])
    raw = parameters["spec"]["rawConfig"]["config"]
    assert raw["session"] == {"key": "${CONFIG_SESSION_KEY}"}
    assert raw["logging"]["fields"]["add"] == {"a": '"$$x"'}
    assert gateway["spec"]["infrastructure"]["parametersRef"]["name"] == parameters["metadata"]["name"]
    file = to_file(found.documents, "")
    assert load(TextSource(file.text), environ={"CONFIG_SESSION_KEY": key}).gateway.process.workers.count == 2


def test_what_a_gateway_would_serve_in_another_order_is_told(tmp_path: Path) -> None:
    text = """\
gateways: {default: {port: 8080}}
routes:
- {name: second, backends: [{host: "a.test:1"}]}
- {name: first, backends: [{host: "a.test:2"}]}
"""
    (only,) = converted(tmp_path, text).losses
    assert (only.path, only.line) == ("routes[1]", 4)
    assert "before" in only.why


def test_a_limit_of_a_resource_is_told(tmp_path: Path) -> None:
    headers = ", ".join(f"x-{number}: a" for number in range(70))
    text = f"""\
gateways: {{default: {{port: 8080}}}}
routes:
- policies: {{directResponse: {{status: 200, headers: {{{headers.replace("a", "'1'")}}}}}}}
"""
    assert "1..16 are allowed" in converted(tmp_path, text).losses[0].why


def test_secrets_of_a_manifest_may_be_plain_texts_and_its_namespace_unsaid() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: value}\n"
    (found,) = documents_of([text], "shop")
    assert (found["metadata"]["namespace"], found["data"]) == ("shop", {"key": "dmFsdWU="})


@pytest.mark.parametrize(
    ("text", "gateway", "why"),
    [
        ("", "", "there is no Gateway"),
        ("a: [", "", "no YAML"),
        ("a: 1", "", "without apiVersion"),
        ("- 1", "", "without apiVersion"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, gateway: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        to_file(documents_of([text]), gateway)


def test_one_of_several_gateways_has_to_be_named(tmp_path: Path) -> None:
    documents = [*converted(tmp_path, ROUTE, GatewayNames("a")).documents, *converted(tmp_path, ROUTE, GatewayNames("b")).documents]
    with pytest.raises(ValueError, match="which Gateway: default/a, default/b"):
        to_file(documents, "")
    with pytest.raises(ValueError, match="no Gateway default/c"):
        to_file(documents, "default/c")
    assert "port: 8080" in to_file(documents, "default/b").text
