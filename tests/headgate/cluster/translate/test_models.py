"""GatewayModels as models of the file."""

from __future__ import annotations

import pytest
from manifests import Json, entries, model, service, to

from headgate.cluster.resources.model import PROVIDERS
from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.checked import faults_of_models
from headgate.cluster.translate.models import ModelReader, model_set, translated_model

SECRETS = [entries("Secret", "shop/key", Authorization="k"), service("shop/proxy")]
EXAMPLES: dict[str, Json] = {
    "Azure": {"azure": {"resourceName": "r", "resourceType": "OpenAI"}}, "Bedrock": {"bedrock": {"region": "us-east-1"}},
    "VertexAI": {"vertexai": {"projectId": "p", "region": "global"}}, "Ollama": {"baseURL": "http://ollama.test:11434/v1"},
    "Custom": {"custom": {"formats": [{"type": "Completions"}]}, "baseURL": "http://it.test"},
}  # fmt: skip
CASES: list[tuple[Json, Json]] = [
    ({"model": "gpt-5", "match": {"model": "fast"}}, {"name": "fast", "provider": "openai", "params": {"model": "gpt-5"}}),
    (
        {"provider": "Azure", "azure": {"resourceName": "r", "resourceType": "Foundry", "apiVersion": "v1", "projectName": "p"}},
        {"provider": "azure", "params": {"azureResourceName": "r", "azureResourceType": "Foundry", "azureApiVersion": "v1", "azureProjectName": "p"}},
    ),
    (
        {"provider": "Bedrock", "bedrock": {"region": "eu-west-1", "guardrail": {"identifier": "g", "version": "1"}}},
        {"provider": "bedrock", "params": {"awsRegion": "eu-west-1", "guardrailIdentifier": "g", "guardrailVersion": "1"}},
    ),
    (EXAMPLES["VertexAI"] | {"provider": "VertexAI"}, {"provider": "vertex", "params": {"vertexProject": "p", "vertexRegion": "global"}}),
    (
        EXAMPLES["Custom"] | {"provider": "Custom"},
        {"provider": {"custom": {"formats": [{"type": "Completions"}]}}, "params": {"baseUrl": "http://it.test"}},
    ),
    ({"policies": {"auth": {"secretRef": {"name": "key"}}}}, {"provider": "openai", "auth": {"key": {"value": "k"}}}),
    (
        {"policies": {"authorization": {"policy": {"matchExpressions": ["jwt.team == 'a'"]}}}},
        {"provider": "openai", "authorization": {"rules": [{"allow": "jwt.team == 'a'"}]}},
    ),
    (
        {"policies": {"headers": {"request": {"set": [{"name": "a", "value": "b"}]}, "response": {"remove": ["c"]}}}},
        {"provider": "openai", "requestHeaders": {"set": {"a": "b"}}, "responseHeaders": {"remove": ["c"]}},
    ),
    (
        {"policies": {"health": {"eviction": {"duration": "3s", "healthThreshold": 50}}}},
        {"provider": "openai", "health": {"eviction": {"duration": "3s", "healthThreshold": 0.5}}},
    ),
    (
        {"policies": {"promptGuard": {"request": [{"regex": {"matches": ["x"]}}]}}},
        {"provider": "openai", "guardrails": {"request": [{"regex": {"matches": [{"pattern": "x"}]}}]}},
    ),
    ({"policies": {"tls": {"sni": "a.test"}}}, {"provider": "openai", "backendTLS": {"hostname": "a.test"}}),
    (
        {"policies": {"tunnel": {"backendRef": to("proxy")}}},
        {"provider": "openai", "backendTunnel": {"proxy": {"service": {"name": "shop/proxy.shop.svc.cluster.local", "port": 8080}}}},
    ),
    (
        {"policies": {"transformations": [{"field": "user", "expression": "'u'"}], "finalTransformations": [{"field": "n", "expression": "1"}]}},
        {"provider": "openai", "transformation": {"user": "'u'"}, "finalTransformation": {"n": "1"}},
    ),
]  # fmt: skip


def reader(*documents: Json) -> ModelReader:
    return ModelReader(Snapshot.of([*SECRETS, *documents]))


@pytest.mark.parametrize(("spec", "ours"), CASES, ids=lambda one: "-".join(one))
def test_a_model_is_that_of_the_file(spec: Json, ours: Json) -> None:
    found = translated_model(Snapshot.of(SECRETS), model(**spec))
    assert found.form == {"id": "shop/gpt", "name": "gpt"} | ours
    assert found.invalid == ()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_is_known_to_the_file(provider: str) -> None:
    assert translated_model(Snapshot.of([]), model(provider=provider, **EXAMPLES.get(provider, {}))).invalid == ()


def test_what_policies_call_is_noted() -> None:
    found = translated_model(Snapshot.of(SECRETS), model(policies={"tunnel": {"backendRef": to("proxy")}}))
    assert found.used == {("shop", "proxy")}


@pytest.mark.parametrize(
    ("policies", "words"),
    [
        ({"auth": {"secretRef": {"name": "gone"}}}, "policies.auth: Secret shop/gone not found"),
        ({"authorization": {"policy": {"matchExpressions": ["1 +"]}}}, "authorization.rules[0]"),
    ],
)
def test_a_model_that_cannot_be_said_keeps_its_name_and_leads_nowhere(policies: Json, words: str) -> None:
    found = translated_model(Snapshot.of([]), model(policies=policies, match={"model": "gpt-5"}))
    assert found.form is not None
    assert (found.form["name"], found.form["params"]) == ("gpt-5", {"baseUrl": "http://unresolved.invalid"})
    assert (found.invalid[0].reason, words in found.invalid[0].message) == ("UnsupportedValue", True)
    assert faults_of_models({"models": [found.form]}) == ()


PLAIN, PATTERN = model("shop/plain", match={"model": "gpt-5"}), model("shop/wide", match={"model": "gpt-*"})
PINNED = model("shop/pinned", model="gpt-6", visibility="Internal")


def virtual(kind: str, *targets: Json, name: str = "shop/best") -> Json:
    return model(name, virtualModel={kind: {"targets": list(targets)}})


def made(*models: Json) -> tuple[Json, dict[str, list[str]]]:
    found = model_set(reader(*models), models)
    assert faults_of_models(found.form) == ()
    return found.form, {str(key): [one.reason for one in unmet] for key, unmet in found.unresolved.items()}


def test_targets_are_internal_models_that_no_other_name_fits() -> None:
    targets = [{"modelRef": "plain", "weight": 3}, {"modelRef": "wide", "model": "gpt-4", "weight": 1}, {"modelRef": "pinned", "model": "x"}]
    form, unresolved = made(PLAIN, PATTERN, PINNED, virtual("weighted", *targets))
    names = ["shop/plain:gpt-5", "shop/wide:gpt-4", "shop/pinned:gpt-6"]
    internal = [one for one in form["models"] if one.get("visibility") == "internal"]
    assert [(one["name"], one["params"]["model"]) for one in internal] == [(name, name.partition(":")[2]) for name in names]
    assert [one["name"] for one in form["models"] if "visibility" not in one] == ["gpt-5", "gpt-*"]
    routed = form["virtualModels"][0]["routing"]["weighted"]["targets"]
    assert routed == [{"model": names[0], "weight": 3}, {"model": names[1], "weight": 1}, {"model": names[2]}]
    assert unresolved == {}


@pytest.mark.parametrize(
    ("target", "reason"),
    [({"modelRef": "gone"}, "BackendNotFound"), ({"modelRef": "best"}, "UnsupportedValue"), ({"modelRef": "wide"}, "UnsupportedValue")],
)
def test_a_target_that_is_none_keeps_its_share(target: Json, reason: str) -> None:
    form, unresolved = made(PLAIN, PATTERN, virtual("weighted", {"modelRef": "plain"}, target | {"weight": 9}))
    assert form["virtualModels"][0]["routing"]["weighted"]["targets"][1] == {"model": "shop/best:unresolved", "weight": 9}
    assert unresolved == {"shop/best": [reason]}


def test_where_others_take_over_a_target_that_is_none_is_left_out() -> None:
    form, unresolved = made(PLAIN, virtual("failover", {"modelRef": "gone", "priority": 0}, {"modelRef": "plain", "priority": 1}))
    assert form["virtualModels"][0]["routing"]["failover"]["targets"] == [{"model": "shop/plain:gpt-5", "priority": 1}]
    assert unresolved == {"shop/best": ["BackendNotFound"]}
    form, _ = made(virtual("failover", {"modelRef": "gone", "priority": 0}))
    assert form["virtualModels"][0]["routing"]["failover"]["targets"] == [{"model": "shop/best:unresolved", "priority": 0}]


def test_what_the_file_refuses_of_a_virtual_model_is_told() -> None:
    targets = [{"modelRef": "plain", "priority": number} for number in range(9)]
    form, unresolved = made(PLAIN, virtual("failover", *targets))
    assert form["virtualModels"][0]["routing"] == {"weighted": {"targets": [{"model": "shop/best:unresolved"}]}}
    assert unresolved == {"shop/best": ["UnsupportedValue"]}


def test_conditions_of_targets() -> None:
    form, _ = made(PLAIN, virtual("conditional", {"modelRef": "plain", "when": "llmRequest.stream == true"}, {"modelRef": "plain"}))
    assert form["virtualModels"][0]["routing"]["conditional"]["targets"] == [
        {"model": "shop/plain:gpt-5", "when": "llmRequest.stream == true"}, {"model": "shop/plain:gpt-5"},
    ]  # fmt: skip
