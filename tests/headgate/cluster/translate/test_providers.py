"""LLM providers of backends."""

from __future__ import annotations

import re

import pytest
from manifests import Json, service

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.checked import faults_of_backend
from headgate.cluster.translate.providers import named_provider

SNAPSHOT = Snapshot.of([service("shop/model")])
FORMATS = {"formats": [{"type": "Completions", "path": "/x"}, {"type": "AnthropicTokenCount"}]}


@pytest.mark.parametrize(
    ("kind", "ours"),
    [
        ({"openai": {"model": "m"}}, {"openAI": {"model": "m"}}),
        ({"anthropic": {}}, {"anthropic": {}}),
        ({"gemini": {"model": "m"}}, {"gemini": {"model": "m"}}),
        ({"vertexai": {"projectId": "p", "region": "global"}}, {"vertex": {"projectId": "p", "region": "global"}}),
        ({"azure": {"resourceName": "r", "resourceType": "Foundry"}}, {"azure": {"resourceName": "r", "resourceType": "Foundry"}}),
        (
            {"azureopenai": {"endpoint": "https://Mine.openai.azure.com", "deploymentName": "d", "apiVersion": "v1"}},
            {"azure": {"resourceName": "mine", "resourceType": "openAI", "apiVersion": "v1", "model": "d"}},
        ),
        (
            {"bedrock": {"region": "us-east-1", "model": "m", "guardrail": {"identifier": "g", "version": "1"}}},
            {"bedrock": {"region": "us-east-1", "model": "m", "guardrailIdentifier": "g", "guardrailVersion": "1"}},
        ),
        ({"custom": FORMATS, "host": "a.test", "port": 80}, {"custom": FORMATS}),
    ],
    ids=lambda one: next(iter(one)),
)
def test_kinds_are_those_of_the_file(kind: Json, ours: Json) -> None:
    found = named_provider(SNAPSHOT, "shop", {"name": "p", **kind}, set())
    assert (found["name"], found["provider"]) == ("p", ours)
    assert faults_of_backend({"name": "shop/x", "ai": found}) == ()


def test_a_provider_may_be_somewhere_else() -> None:
    found = named_provider(SNAPSHOT, "shop", {"name": "p", "openai": {}, "host": "::1", "port": 8080, "pathPrefix": "/v2"}, set())
    assert found == {"name": "p", "provider": {"openAI": {}}, "hostOverride": "[::1]:8080", "pathPrefix": "/v2"}
    assert named_provider(SNAPSHOT, "shop", {"name": "p", "gemini": {}, "path": "/all"}, set())["pathOverride"] == "/all"
    custom = {"custom": {**FORMATS, "backendRef": {"name": "model", "port": 8080}}}
    used: set[ObjectKey] = set()
    found = named_provider(SNAPSHOT, "shop", {"name": "p", **custom}, used)
    # Its endpoints are sent along, which the loader takes for its name.
    assert used == {ObjectKey("shop", "model")}
    assert (found["hostOverride"], found["provider"]) == ("model.shop.svc.cluster.local:8080", {"custom": FORMATS})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({"azureopenai": {"endpoint": "https://proxy.test"}}, "azureopenai.endpoint is not of the form"),
        ({"custom": {"backendRef": {"name": "gone", "port": 80}, **FORMATS}}, "Service shop/gone not found"),
        ({"custom": {"backendRef": {"name": "model", "port": 1}, **FORMATS}}, "Service shop/model has no port 1"),
        ({"custom": {"backendRef": {"group": "x", "kind": "Pool", "name": "p"}, **FORMATS}}, "kind Pool is not supported"),
    ],
)
def test_what_cannot_be_said_is_told(kind: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        named_provider(SNAPSHOT, "shop", {"name": "p", **kind}, set())
