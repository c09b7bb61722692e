"""Guards of prompts and of MCP servers as the file has them."""

from __future__ import annotations

import pytest
from manifests import Json, entries, service, to

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.backend_policies import BackendPolicyReader
from headgate.cluster.translate.checked import faults_of_backend

SNAPSHOT = Snapshot.of([service("shop/guard"), entries("Secret", "shop/key", Authorization="k")])
GUARD = {"service": {"name": "shop/guard.shop.svc.cluster.local", "port": 8080}}
KEY = {"auth": {"secretRef": {"name": "key"}}}
AT_KEY = {"backendAuth": {"key": {"value": "k"}}}
REQUESTS = [
    (
        {"regex": {"action": "Reject", "matches": ["sesame", {"pattern": "x+", "name": "x"}], "builtins": ["Ssn"],
                   "response": {"statusCode": 451, "message": "no"}}},
        {"regex": {"action": "Reject", "matches": [{"pattern": "sesame"}, {"pattern": "x+", "name": "x"}], "builtins": ["Ssn"],
                   "response": {"statusCode": 451, "message": "no"}}},
    ),
    (
        {"webhook": {"backendRef": to("guard"), "headers": {"x": "'1'"}, "failureMode": "FailOpen",
                     "forwardHeaderMatches": [{"name": "a", "value": "b"}, {"name": "c", "value": "d.*", "type": "RegularExpression"}]}},
        {"webhook": {"target": GUARD, "headers": {"x": "'1'"}, "failureMode": "FailOpen",
                     "forwardHeaderMatches": [{"name": "a", "value": {"exact": "b"}}, {"name": "c", "value": {"regex": "d.*"}}]}},
    ),
    ({"webhook": {"url": "http://guard.test"}}, {"webhook": {"target": {"host": "http://guard.test"}}}),
    ({"openAIModeration": {"model": "m", "policies": KEY}}, {"openAIModeration": {"model": "m", "policies": AT_KEY}}),
    (
        {"scope": ["ToolOutput"], "bedrockGuardrails": {"identifier": "i", "version": "1", "region": "us-east-1", "policies": KEY}},
        {"scope": ["ToolOutput"], "bedrockGuardrails": {"identifier": "i", "version": "1", "region": "us-east-1", "policies": {"backendAuth": {"key": "k"}}}},
    ),
    (
        {"googleModelArmor": {"templateId": "t", "projectId": "p", "location": "us-central1", "policies": KEY}},
        {"googleModelArmor": {"templateId": "t", "projectId": "p", "location": "us-central1", "policies": AT_KEY}},
    ),
    (
        {"azureContentSafety": {"endpoint": "https://x.cognitiveservices.azure.com", "analyzeText": {"severityThreshold": 2}}},
        {"azureContentSafety": {"endpoint": "https://x.cognitiveservices.azure.com", "analyzeText": {"severityThreshold": 2}}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("guard", "ours"), REQUESTS, ids=lambda one: "-".join(one))
def test_guards_of_prompts(guard: Json, ours: Json) -> None:
    found = BackendPolicyReader(SNAPSHOT, "shop").read({"ai": {"promptGuard": {"streaming": "Enabled", "request": [guard]}}})
    assert found == {"ai": {"promptGuard": {"streaming": "Enabled", "request": [ours]}}}
    backend = {"name": "p", "provider": {"openAI": {}}}
    assert faults_of_backend({"name": "shop/x", "ai": backend, "policies": found}) == ()


def test_guards_of_answers() -> None:
    found = BackendPolicyReader(SNAPSHOT, "shop").read({"ai": {"promptGuard": {"response": [{"regex": {"matches": ["a"]}}]}}})
    assert found == {"ai": {"promptGuard": {"response": [{"regex": {"matches": [{"pattern": "a"}]}}]}}}


def test_guards_of_mcp_servers() -> None:
    remote = {
        "backendRef": to("guard"), "failureMode": "FailOpen", "metadata": {"user": "'u'"},
        "allowedRequestHeaders": ["x-a"], "disallowedRequestHeaders": ["x-b"],
    }  # fmt: skip
    reader = BackendPolicyReader(SNAPSHOT, "shop")
    processors = [{"remote": remote, "methods": {"tools/*": "Full"}}, {"remote": {"url": "http://g.test"}, "methods": {"*": "Request"}}]
    found = reader.read({"mcp": {"guardrails": {"processors": processors}}})
    assert found == {
        "mcpGuardrails": {
            "processors": [
                {
                    "kind": "remote", **GUARD, "methods": {"tools/*": "Full"}, "failureMode": "FailOpen", "metadata": {"user": "'u'"},
                    "requestHeaders": {"allowed": ["x-a"], "disallowed": ["x-b"]},
                },
                {"kind": "remote", "host": "http://g.test", "methods": {"*": "Request"}},
            ]
        }
    }  # fmt: skip
    assert reader.services.used == {("shop", "guard")}
    backend = {"targets": [{"name": "x", "mcp": {"host": "127.0.0.1:1"}}]}
    assert faults_of_backend({"name": "shop/x", "mcp": backend, "policies": found}) == ()
