"""`traffic` of a GatewayPolicy as policies of the file."""

from __future__ import annotations

import json

import pytest
from manifests import Json

from headgate.cluster.translate.traffic import CLOSED, traffic
from headgate.config.load import TextSource, load

HEADER = [{"name": "x-a", "value": "1"}]
CASES = [
    ({"timeouts": {"request": "3s"}}, {"timeout": {"requestTimeout": "3s"}}),
    ({"retry": {"attempts": 2, "codes": [503]}}, {"retry": {"attempts": 2, "codes": [503]}}),
    ({"retry": {"condition": "response.code == 500"}}, {"retry": {"codes": [], "condition": "response.code == 500"}}),
    ({"delay": {"duration": "'1s'"}}, {"delay": {"duration": "'1s'"}}),
    ({"csrf": {"additionalOrigins": ["https://a.test"]}}, {"csrf": {"additionalOrigins": ["https://a.test"]}}),
    ({"buffer": {"request": {"maxBytes": "2Mi", "failureMode": "FailOpen"}}}, {"buffer": {"request": {"maxBytes": "2Mi", "failureMode": "FailOpen"}}}),
    ({"hostRewrite": {"mode": "None"}}, {"urlRewrite": {"authority": "None"}}),
    ({"cors": {"allowOrigins": ["*"], "maxAge": 7}}, {"cors": {"allowOrigins": ["*"], "maxAge": "7s"}}),
    (
        {"headerModifiers": {"request": {"set": HEADER, "remove": ["b"]}, "response": {"add": HEADER}}},
        {"requestHeaderModifier": {"set": {"x-a": "1"}, "remove": ["b"]}, "responseHeaderModifier": {"add": {"x-a": "1"}}},
    ),
    (
        {"authorization": {"action": "Deny", "policy": {"matchExpressions": ["request.path == '/a'", "false"]}}},
        {"authorization": {"rules": [{"deny": "request.path == '/a'"}, {"deny": "false"}]}},
    ),
    (
        {"authorization": {"policy": {"matchExpressions": ["true"]}}},
        {"authorization": {"rules": [{"allow": "true"}]}},
    ),
    (
        {"transformation": {"request": {"set": [{"name": ":path", "value": "'/x'"}], "body": "'b'"}, "response": {"remove": ["x"]}}},
        {"transformations": {"request": {"set": {":path": "'/x'"}, "body": "'b'"}, "response": {"remove": ["x"]}}},
    ),
    (
        {"directResponse": {"status": 418, "body": "no", "headers": [{"name": "x-a", "value": "'1'"}]}},
        {"directResponse": {"status": 418, "body": "no", "headers": {"x-a": "'1'"}}},
    ),
    (
        {"directResponse": {"conditional": [{"condition": "true", "policy": {"status": 204}}, {"policy": {"status": 404}}]}},
        {"directResponse": {"conditional": [{"status": 204, "condition": "true"}, {"status": 404}]}},
    ),
    (
        {"rateLimit": {"local": [{"requests": 10, "unit": "Seconds", "burst": 5}, {"tokens": 9, "unit": "Hours"}]}},
        {"localRateLimit": [{"requests": 10, "unit": "Seconds", "burst": 5}, {"tokens": 9, "unit": "Hours"}]},
    ),
    (
        {"rateLimit": {"conditional": [{"condition": "true", "policy": {"local": [{"tokens": 9, "unit": "Minutes", "burst": 1}]}}]}},
        {"localRateLimit": {"conditional": [{"type": "tokens", "tokensPerFill": 9, "maxTokens": 10, "fillInterval": "1m", "condition": "true"}]}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("section", "ours"), CASES, ids=lambda one: next(iter(one)))
def test_parts_are_policies_that_the_loader_takes(section: Json, ours: Json) -> None:
    found = traffic(section)
    assert (found.found, found.faults) == (ours, [])
    route = {"policies": ours, "backends": [{"host": "127.0.0.1:1"}]}
    text = json.dumps({"binds": [{"port": 8080, "listeners": [{"routes": [route]}]}]})
    # No model is behind the route.
    assert [one for one in load(TextSource(text)).warnings if "a limit of tokens has no effect" not in one] == []


@pytest.mark.parametrize("name", ["jwtAuthentication", "apiKeyAuthentication", "basicAuthentication", "extAuth", "extProc"])
def test_nobody_passes_what_protects_and_cannot_be_said(name: str) -> None:
    allow = {"authorization": {"policy": {"matchExpressions": ["true"]}}}
    for section in ({name: {}, **allow}, {**allow, name: {}}):
        found = traffic(section)
        assert found.found == {"authorization": {"rules": [{"allow": "true"}, CLOSED]}}
        assert found.faults == [f"traffic.{name} is not supported yet"]
    assert traffic({name: {}}).found == {"authorization": {"rules": [CLOSED]}}


def test_other_parts_that_cannot_be_said_are_told_and_leave_the_rest() -> None:
    found = traffic({"rateLimit": {"global": {}}, "timeouts": {"request": "1s"}, "phase": "PostRouting"})
    assert found.found == {"timeout": {"requestTimeout": "1s"}}
    assert found.faults == ["traffic.rateLimit global is not supported yet"]
    two = {"conditional": [{"policy": {"local": [{"requests": 1, "unit": "Hours"}] * 2}}]}
    assert traffic({"rateLimit": two}).faults == ["traffic.rateLimit with conditions has exactly one local limit in each entry"]


def test_what_the_loader_refuses_is_told_and_what_protects_lets_nobody_pass() -> None:
    allow = {"policy": {"matchExpressions": ["1 +"]}}
    found = traffic({"authorization": allow, "delay": {"duration": "1 +"}, "timeouts": {"request": "1s"}})
    assert found.found == {"timeout": {"requestTimeout": "1s"}, "authorization": {"rules": [CLOSED]}}
    assert [one.partition(":")[0] for one in found.faults] == ["traffic.authorization cannot be in force", "traffic.delay cannot be in force"]
    assert all("ends too early" in one for one in found.faults)
