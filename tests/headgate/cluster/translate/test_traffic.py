"""`traffic` of a GatewayPolicy as policies of the file."""

from __future__ import annotations

import json

import pytest
from manifests import Json, entries, service, to

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.traffic import CLOSED, Policies
from headgate.cluster.translate.traffic import traffic as translated
from headgate.config.load import TextSource, load

SNAPSHOT = Snapshot.of([
    service("shop/judge"), entries("Secret", "shop/keys", app="k1", other="*" * 3), entries("Secret", "shop/users", **{".htaccess": "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M="}),
])  # fmt: skip
KEYS = '{"keys":[{"kty":"EC","crv":"P-256","kid":"a","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}'
HEADER = [{"name": "x-a", "value": "1"}]
REF = {"backendRef": to("judge")}
JUDGE = {"service": {"name": "shop/judge.shop.svc.cluster.local", "port": 8080}}
LIMIT = {"domain": "d", "descriptors": [{"entries": [{"name": "a", "expression": "'b'"}]}], **REF}
OUR_LIMIT = {"domain": "d", "descriptors": [{"entries": [{"key": "a", "value": "'b'"}]}], **JUDGE}
CASES = [
    ({"extAuth": {**REF, "grpc": {}}}, {"extAuthz": {**JUDGE, "failureMode": "deny", "protocol": {"grpc": {}}}}),
    (
        {"extAuth": {"conditional": [{"condition": "true", "policy": {**REF, "http": {}}}]}},
        {"extAuthz": {"conditional": [{**JUDGE, "failureMode": "deny", "protocol": {"http": {}}, "condition": "true"}]}},
    ),
    ({"extProc": {**REF, "failureMode": "FailOpen"}}, {"extProc": {**JUDGE, "failureMode": "FailOpen"}}),
    (
        {"rateLimit": {"local": [{"requests": 1, "unit": "Hours"}], "global": LIMIT}},
        {"localRateLimit": [{"requests": 1, "unit": "Hours"}], "remoteRateLimit": OUR_LIMIT},
    ),
    (
        {"rateLimit": {"conditional": [{"condition": "true", "policy": {"global": LIMIT}}, {"policy": {"global": LIMIT}}]}},
        {"remoteRateLimit": {"conditional": [{**OUR_LIMIT, "condition": "true"}, OUR_LIMIT]}},
    ),
    (
        {"jwtAuthentication": {"mode": "Optional", "providers": [{"issuer": "i", "audiences": ["a"], "jwks": {"inline": KEYS}}]}},
        {"jwtAuth": {"mode": "Optional", "providers": [{"issuer": "i", "audiences": ["a"], "jwks": KEYS}]}},
    ),
    ({"apiKeyAuthentication": {"secretRef": {"name": "keys"}}}, {"apiKey": {"keys": [{"key": "k1"}, {"key": "***"}]}}),
    (
        {"basicAuthentication": {"secretRef": {"name": "users"}, "realm": "shop"}},
        {"basicAuth": {"htpasswd": "ann:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=", "realm": "shop"}},
    ),
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


def traffic(section: Json) -> Policies:
    return translated(SNAPSHOT, "shop", section)


@pytest.mark.parametrize(("section", "ours"), CASES, ids=lambda one: next(iter(one)))
def test_parts_are_policies_that_the_loader_takes(section: Json, ours: Json) -> None:
    found = traffic(section)
    assert (found.found, found.faults) == (ours, [])
    route = {"policies": ours, "backends": [{"host": "127.0.0.1:1"}]}
    known = {"name": "judge", "namespace": "shop", "hostname": "judge.shop.svc.cluster.local", "ports": {"8080": 80}}
    text = json.dumps({"binds": [{"port": 8080, "listeners": [{"routes": [route]}]}], "services": [known]})
    # No model is behind the route.
    assert [one for one in load(TextSource(text)).warnings if "a limit of tokens has no effect" not in one] == []


@pytest.mark.parametrize("name", ["extAuth", "extProc"])
def test_nobody_passes_what_protects_and_cannot_be_said(name: str) -> None:
    allow = {"authorization": {"policy": {"matchExpressions": ["true"]}}}
    part = {"backendRef": to("gone"), "grpc": {}}
    for section in ({name: part, **allow}, {**allow, name: part}):
        found = traffic(section)
        assert found.found == {"authorization": {"rules": [{"allow": "true"}, CLOSED]}}
        assert found.faults == [f"traffic.{name} Service shop/gone not found"]
    assert traffic({name: part}).found == {"authorization": {"rules": [CLOSED]}}


def test_other_parts_that_cannot_be_said_are_told_and_leave_the_rest() -> None:
    lost = {**LIMIT, "backendRef": to("gone")}
    found = traffic({"rateLimit": {"global": lost}, "timeouts": {"request": "1s"}, "phase": "PostRouting"})
    assert found.found == {"timeout": {"requestTimeout": "1s"}}
    assert found.faults == ["traffic.rateLimit Service shop/gone not found"]
    local = {"local": [{"requests": 1, "unit": "Hours"}]}
    mixed = {"conditional": [{"condition": "true", "policy": local}, {"policy": {"global": LIMIT}}]}
    assert traffic({"rateLimit": mixed}).faults == ["traffic.rateLimit with conditions is either local in all entries or global in all"]
    two = {"conditional": [{"policy": {"local": [{"requests": 1, "unit": "Hours"}] * 2}}]}
    assert traffic({"rateLimit": two}).faults == ["traffic.rateLimit with conditions has exactly one local limit in each entry"]


def test_what_the_loader_refuses_is_told_and_what_protects_lets_nobody_pass() -> None:
    allow = {"policy": {"matchExpressions": ["1 +"]}}
    found = traffic({"authorization": allow, "delay": {"duration": "1 +"}, "timeouts": {"request": "1s"}})
    assert found.found == {"timeout": {"requestTimeout": "1s"}, "authorization": {"rules": [CLOSED]}}
    assert [one.partition(":")[0] for one in found.faults] == ["traffic.authorization cannot be in force", "traffic.delay cannot be in force"]
    assert all("ends too early" in one for one in found.faults)


def test_entries_that_cannot_be_used_are_told_and_the_others_hold() -> None:
    snapshot = Snapshot.of([entries("Secret", "shop/keys", a="k", b="k")])
    found = translated(snapshot, "shop", {"apiKeyAuthentication": {"secretRef": {"name": "keys"}}})
    assert found.found == {"apiKey": {"keys": [{"key": "k"}]}}
    assert found.faults == ["traffic.apiKeyAuthentication: Secret shop/keys: b is not used: it is a key that is there already"]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"apiKeyAuthentication": {"secretRef": {"name": "gone"}}}, "Secret shop/gone not found"),
        ({"basicAuthentication": {"users": ["ann"]}}, "cannot be in force"),
        ({"jwtAuthentication": {"providers": [{"issuer": "i", "jwks": {"inline": "{}"}}]}}, "cannot be in force"),
    ],
)
def test_nobody_passes_a_login_that_cannot_be_checked(section: Json, words: str) -> None:
    found = traffic(section)
    assert found.found == {"authorization": {"rules": [CLOSED]}}
    assert words in found.faults[0]
