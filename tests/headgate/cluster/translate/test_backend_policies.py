"""Policies of backends as the file has them."""

from __future__ import annotations

import re

import pytest
from certificates_rig import CHAIN, PAIR, secret
from manifests import Json, entries

from headgate.cluster.snapshot import Snapshot
from headgate.cluster.translate.backend_policies import BackendPolicyReader
from headgate.cluster.translate.checked import faults_of_backend

KEY = "".join(one.decode() for one in (PAIR.private_key_pem.bytes(),))
SNAPSHOT = Snapshot.of([
    secret("shop/tls"), entries("ConfigMap", "shop/ca", **{"ca.crt": CHAIN.decode()}), entries("Secret", "shop/sign", signingKey=KEY),
    entries("Secret", "shop/key", Authorization="Bearer x\n", other="y"), entries("Secret", "shop/aws", accessKey="a", secretKey="b", sessionToken="c"),
    entries("Secret", "shop/azure", tenantID="t", clientID="c", clientSecret="s\n"),
    entries("Secret", "shop/gcp", **{"credentials.json": "{}"}), entries("Secret", "shop/short", accessKey="a"),
])  # fmt: skip
HEADER = {"header": {"name": "x-key"}}
CASES = [
    ({"http": {"version": "HTTP2", "requestTimeout": "3s"}}, {"http": {"version": "HTTP/2", "requestTimeout": "3s"}}),
    ({"tcp": {"connectTimeout": "1s"}}, {"tcp": {"keepalives": {"enabled": False}, "connectTimeout": "1s"}}),
    ({"tcp": {"keepalive": {"retries": 3, "time": "9s"}}}, {"tcp": {"keepalives": {"enabled": True, "retries": 3, "time": "9s"}, "connectTimeout": "10s"}}),
    ({"tls": {}}, {"backendTLS": {}}),
    (
        {"tls": {"sni": "a.test", "alpnProtocols": ["h2"], "insecureSkipVerify": "Hostname", "keyExchangeGroups": ["X25519"]}},
        {"backendTLS": {"hostname": "a.test", "alpn": ["h2"], "insecureHost": True, "keyExchangeGroups": ["X25519"]}},
    ),
    ({"tls": {"insecureSkipVerify": "All"}}, {"backendTLS": {"insecure": True}}),
    (
        {"tls": {"caCertificateRefs": [{"name": "ca"}], "verifySubjectAltNames": ["a.test"]}},
        {"backendTLS": {"root": CHAIN.decode(), "subjectAltNames": ["a.test"]}},
    ),
    ({"tls": {"mtlsCertificateRef": [{"name": "tls"}]}}, {"backendTLS": {"cert": CHAIN.decode(), "key": KEY}}),
    ({"tunnel": {"url": "http://proxy.test:3128/"}}, {"backendTunnel": {"proxy": {"host": "http://proxy.test:3128"}}}),
    ({"auth": {"key": "k"}}, {"backendAuth": {"key": {"value": "k"}}}),
    ({"auth": {"secretRef": {"name": "key"}, "location": HEADER}}, {"backendAuth": {"key": {"value": "Bearer x", "location": HEADER}}}),
    ({"auth": {"passthrough": {}}}, {"backendAuth": {"passthrough": {}}}),
    (
        {"auth": {"aws": {"region": "us-east-1", "secretRef": {"name": "aws"}}}},
        {"backendAuth": {"aws": {"region": "us-east-1", "accessKeyId": "a", "secretAccessKey": "b", "sessionToken": "c"}}},
    ),
    (
        {"auth": {"aws": {"assumeRole": {"roleArn": "arn:aws:iam::123456789012:role/x", "sessionNameExpression": "'s'"}}}},
        {"backendAuth": {"aws": {"assumeRole": {"roleArn": "arn:aws:iam::123456789012:role/x", "sessionName": {"expression": "'s'"}}}}},
    ),
    (
        {"auth": {"azure": {"secretRef": {"name": "azure"}}}},
        {"backendAuth": {"azure": {"explicitConfig": {"clientSecret": {"tenant_id": "t", "client_id": "c", "client_secret": "s"}}}}},
    ),
    (
        {"auth": {"azure": {"managedIdentity": {"objectId": "o"}}}},
        {"backendAuth": {"azure": {"explicitConfig": {"managedIdentity": {"userAssignedIdentity": {"objectId": "o"}}}}}},
    ),
    ({"auth": {"azure": {"managedIdentity": {}}}}, {"backendAuth": {"azure": {"explicitConfig": {"managedIdentity": {}}}}}),
    ({"auth": {"azure": {"workloadIdentity": {}}}}, {"backendAuth": {"azure": {"explicitConfig": {"workloadIdentity": {}}}}}),
    ({"auth": {"azure": {}}}, {"backendAuth": {"azure": {"implicit": {}}}}),
    (
        {"auth": {"jwtSign": {"signingKeyRef": {"name": "sign"}, "alg": "ES256", "ttl": "60s"}}},
        {"backendAuth": {"jwtSign": {"signingKey": KEY.rstrip(), "alg": "ES256", "ttl": "60s"}}},
    ),
    (
        {"auth": {"credentials": [{"location": HEADER, "secretRef": {"name": "key", "key": "other"}}]}},
        {"backendAuth": {"credentials": [{"location": HEADER, "key": "y"}]}},
    ),
    (
        {"health": {"unhealthyCondition": "false", "eviction": {"duration": "3s", "healthThreshold": 30, "restoreHealth": 100, "consecutiveFailures": 2}}},
        {"health": {"unhealthyExpression": "false", "eviction": {"duration": "3s", "healthThreshold": 0.3, "restoreHealth": 1.0, "consecutiveFailures": 2}}},
    ),
    ({"transformation": {"request": {"set": [{"name": "x", "value": "'1'"}]}}}, {"transformations": {"request": {"set": {"x": "'1'"}}}}),
]  # fmt: skip
AI_CASES = [
    ({"defaults": [{"field": "temperature", "value": 0.5}]}, {"defaults": {"temperature": 0.5}}),
    ({"overrides": [{"field": "stream", "value": False}]}, {"overrides": {"stream": False}}),
    ({"transformations": [{"field": "user", "expression": "'u'"}]}, {"transformations": {"user": "'u'"}}),
    ({"prompt": {"prepend": [{"role": "system", "content": "Be kind."}]}}, {"prompts": {"prepend": [{"role": "system", "content": "Be kind."}]}}),
    ({"modelAliases": {"fast": "m"}, "routes": {"/v1/x": "Completions"}}, {"modelAliases": {"fast": "m"}, "routes": {"/v1/x": "Completions"}}),
    ({"promptCaching": {"cacheTools": True, "minTokens": 1024}}, {"promptCaching": {"cacheTools": True, "minTokens": 1024}}),
]  # fmt: skip


def read(section: Json) -> Json:
    return BackendPolicyReader(SNAPSHOT, "shop").read(section)


@pytest.mark.parametrize(("section", "ours"), CASES, ids=lambda one: next(iter(one)))
def test_policies_are_those_of_the_file(section: Json, ours: Json) -> None:
    found = read(section)
    assert found == ours
    assert faults_of_backend({"name": "shop/x", "host": "a.test:80", "policies": found}) == ()


@pytest.mark.parametrize(("section", "ours"), AI_CASES, ids=lambda one: next(iter(one)))
def test_policies_of_models(section: Json, ours: Json) -> None:
    assert read({"ai": section}) == {"ai": ours}
    backend = {"name": "p", "provider": {"openAI": {}}}
    assert faults_of_backend({"name": "shop/x", "ai": backend, "policies": {"ai": ours}}) == ()


def test_rules_of_mcp() -> None:
    found = read({"mcp": {"authorization": {"action": "Deny", "policy": {"matchExpressions": ["mcp.tool.name == 'rm'"]}}}})
    assert found == {"mcpAuthorization": {"rules": [{"deny": "mcp.tool.name == 'rm'"}]}}


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"tls": {"caCertificateRefs": [{"name": "gone"}]}}, "tls: ConfigMap shop/gone not found"),
        ({"tls": {"mtlsCertificateRef": [{"name": "key"}]}}, "tls: Secret shop/key has no tls.crt"),
        ({"auth": {"secretRef": {"name": "gone"}}}, "auth: Secret shop/gone not found"),
        ({"auth": {"aws": {"secretRef": {"name": "short"}}}}, "auth: Secret shop/short has no secretKey"),
        ({"auth": {"azure": {"secretRef": {"name": "short"}}}}, "auth: Secret shop/short has no tenantID"),
        ({"tunnel": {"backendRef": {"name": "gone", "port": 1}}}, "tunnel: Service shop/gone not found"),
        ({"mcp": {"authentication": {}}}, "mcp: issuer is required"),
        ({"extAuth": {"backendRef": {"name": "gone", "port": 1}, "grpc": {}}}, "extAuth: Service shop/gone not found"),
    ],
)
def test_what_cannot_be_said_is_told(section: Json, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        read(section)
