"""Models of a file as GatewayModels, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.cluster.convert.file import ConvertedFile, to_file, to_resources
from headgate.cluster.convert.gateway import GatewayNames

FILE = """\
gateways: {default: {port: 8080}}
llm:
  providers:
  - name: main
    provider: bedrock
    params: {awsRegion: eu-west-1, guardrailIdentifier: g, guardrailVersion: "2"}
    defaults: {requestHeaders: {set: {x-team: a}}}
  models:
  - {name: fast, provider: groq, params: {model: llama, apiKey: sk-1}}
  - {name: "claude-*", provider: {reference: main}, params: {model: sonnet}}
  - {name: hidden, provider: openAI, visibility: internal, params: {apiKey: sk-2, baseUrl: "https://ai.test/v1"}}
  - name: "*"
    provider: {custom: {formats: [{type: completions, path: /chat}]}}
    params: {baseUrl: "https://own.test"}
    authorization: {rules: [{require: "request.headers['x-team'] == 'a'"}]}
    guardrails: {request: [{regex: {action: reject, builtins: [Email]}}]}
    transformation: {user: "'a'"}
  virtualModels:
  - name: best
    routing: {failover: {targets: [{model: hidden, priority: 0}, {model: fast, priority: 1}]}}
  - name: some
    routing: {weighted: {targets: [{model: claude-3, weight: 3}, {model: fast}]}}
  policies:
    localRateLimit: [{requests: 5, unit: minutes}]
    cors: {allowOrigins: ["https://a.test"], maxAge: 5s}
"""
NAMES = GatewayNames("web", "infra")


def converted(folder: Path, text: str) -> ConvertedFile:
    path = folder / "config.yaml"
    path.write_text(text)
    return to_resources(str(path), NAMES, {})


def specs(found: ConvertedFile, kind: str) -> dict[str, Any]:
    return {one["metadata"]["name"]: one["spec"] for one in found.documents if one["kind"] == kind}


def test_models_stand_at_the_rule_that_leads_to_them(tmp_path: Path) -> None:
    found = converted(tmp_path, FILE)
    assert found.losses == []
    made = specs(found, "GatewayModel")
    parent = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "llm"}
    assert all(one["parentRefs"] == [parent] for one in made.values())
    assert {name: one["match"]["model"] for name, one in made.items()} == {
        "fast": "fast", "claude": "claude-*", "hidden": "hidden", "any": "*", "best": "best", "some": "some",
    }  # fmt: skip
    (route,) = specs(found, "HTTPRoute").values()
    assert route["rules"] == [{"backendRefs": [{"group": "headgate.dev", "kind": "GatewayModel", "name": "*"}]}]
    assert made["fast"]["policies"] == {"auth": {"secretRef": {"name": "fast", "key": "Authorization"}}}
    assert (made["fast"]["provider"], made["fast"]["model"]) == ("Groq", "llama")
    assert made["claude"]["bedrock"] == {"region": "eu-west-1", "guardrail": {"identifier": "g", "version": "2"}}
    assert made["claude"]["policies"] == {"headers": {"request": {"set": [{"name": "x-team", "value": "a"}]}}}
    assert (made["hidden"]["visibility"], made["hidden"]["baseURL"]) == ("Internal", "https://ai.test/v1")
    assert made["any"]["custom"] == {"formats": [{"type": "Completions", "path": "/chat"}]}
    assert made["any"]["policies"].keys() == {"authorization", "promptGuard", "transformations"}
    assert made["best"]["virtualModel"] == {"failover": {"targets": [
        {"modelRef": "hidden", "priority": 0}, {"modelRef": "fast", "priority": 1},
    ]}}  # fmt: skip
    assert made["some"]["virtualModel"]["weighted"]["targets"][0] == {"modelRef": "claude", "weight": 3, "model": "claude-3"}
    (policy,) = specs(found, "GatewayPolicy").values()
    assert policy["traffic"].keys() == {"rateLimit", "cors"}


def test_they_become_a_file_that_becomes_the_same_models(tmp_path: Path) -> None:
    first = converted(tmp_path, FILE)
    file = to_file(first.documents, "infra/web")
    assert file.refused == []
    again = converted(tmp_path, file.text)
    assert again.losses == []

    def public(found: ConvertedFile) -> dict[str, Any]:
        made = specs(found, "GatewayModel").values()
        return {one["match"]["model"]: one.get("virtualModel") and [*one["virtualModel"]] for one in made if "visibility" not in one}

    assert public(again) == public(first)


def test_models_of_a_named_backend_stand_at_each_rule_that_leads_to_it(tmp_path: Path) -> None:
    text = """\
gateways: {default: {port: 8080}}
routes:
- {name: one, matches: [{path: {pathPrefix: /one}}], backends: [{backend: chat}]}
- {name: two, namespace: shop, matches: [{path: {pathPrefix: /two}}], backends: [{backend: chat}]}
- {name: three, ruleName: a, matches: [{path: {pathPrefix: /three}}], backends: [{backend: chat}]}
backends:
- {name: chat, llm: {models: [{name: m, provider: openAI, params: {apiKey: sk-1}}]}}
"""
    found = converted(tmp_path, text)
    assert found.losses == []
    made = [one for one in found.documents if one["kind"] == "GatewayModel"]
    parents = {one["metadata"]["namespace"]: [(each["name"], each.get("sectionName")) for each in one["spec"]["parentRefs"]] for one in made}
    assert parents == {"infra": [("one", None), ("three", "a")], "shop": [("two", None)]}
    assert len(made) == 2


@pytest.mark.parametrize(
    ("model", "path", "line", "why"),
    [
        ("name: m\n    provider: openAI\n    params: {baseUrl: 'http://127.0.0.1:1/v1'}", "llm.models[0].params.baseUrl", 6, "loopback"),
        ("name: m\n    provider: openAI\n    params: {baseUrl: 'http://[::1]:1/v1'}", "llm.models[0].params.baseUrl", 6, "loopback"),
        ("name: m\n    provider: ollama", "llm.models[0].provider", 5, "baseURL"),
        ("name: m\n    provider: openAI\n    defaults: {a: 1}", "llm.models[0].defaults", 6, "has no such field"),
        ("name: m\n    provider: openAI\n    matches: [{headers: [{name: a, value: {exact: b}}]}]", "llm.models[0].matches", 6, "has no such field"),
    ],
)
def test_what_a_gateway_model_cannot_say_is_told(tmp_path: Path, model: str, path: str, line: int, why: str) -> None:
    text = f"gateways: {{default: {{port: 8080}}}}\nllm:\n  models:\n  - {model}\n"
    (lost, *_) = [one for one in converted(tmp_path, text).losses if one.path == path]
    assert lost.line == line
    assert why in lost.why


def test_two_models_of_one_name_are_told(tmp_path: Path) -> None:
    models = "[{name: m, provider: openAI, params: {apiKey: a}}, {name: m, provider: groq, params: {apiKey: b}}]"
    found = converted(tmp_path, f"gateways: {{default: {{port: 8080}}}}\nllm: {{models: {models}}}\n")
    assert any("older GatewayModel" in one.why for one in found.losses)


def test_models_stand_only_at_rules_that_name_their_backend(tmp_path: Path) -> None:
    """A route to a host names no backend, which is not one that is called None."""
    text = """\
gateways: {default: {port: 8080}}
backends: [{name: "None", llm: {models: [{name: a, provider: openAI, params: {apiKey: k}}]}}]
routes:
- {name: plain, matches: [{path: {exact: /plain}}], backends: [{host: "a.test:80"}]}
- {name: models, matches: [{path: {exact: /models}}], backends: [{backend: "None"}]}
"""
    [made] = specs(converted(tmp_path, text), "GatewayModel").values()
    assert [one["name"] for one in made["parentRefs"]] == ["models"]
