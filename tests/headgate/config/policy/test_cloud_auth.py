"""`backendAuth.aws`, `.gcp`, `.azure` and `copilot` from the file to the IR and the dump."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.policy import backend_auth
from headgate.ir.gateway import Gateway
from headgate.ir.policy.cloud_auth import AwsAuth, AzureAuth, GcpAuth

HEAD = "gateways: {default: {port: 1}}\nroutes:\n- backends: [{host: 'h:1', policies: {backendAuth: "
ROLE = "arn:aws:iam::123456789012:role/a/b"
SHOWN: tuple[tuple[str, dict[str, Any] | str], ...] = (
    ("{aws: {accessKeyId: CANARY, secretAccessKey: CANARY, sessionToken: CANARY, region: eu-west-1, serviceName: s3}}",
     {"aws": {"accessKeyId": "<redacted>", "secretAccessKey": "<redacted>", "region": "eu-west-1", "serviceName": "s3"}}),
    ("{aws: {}}", {"aws": {}}),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', tags: [{{key: a, value: b}}, {{key: c, expression: request.path}}]}}}}}}",
     {"aws": {"assumeRole": {"roleArn": ROLE, "sessionName": "headgate",
                             "tags": [{"key": "a", "value": "b"}, {"key": "c", "expression": "request.path"}]}}}),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', sessionName: {{expression: request.path}}}}}}}}",
     {"aws": {"assumeRole": {"roleArn": ROLE, "sessionName": {"expression": "request.path"}}}}),
    ("copilot", "copilot"),
    ("Copilot", "copilot"),
    ("{gcp: {}}", {"gcp": {"type": "accessToken"}}),
    ("{gcp: {type: idToken, audience: x, credential: '{\"type\": \"service_account\", \"private_key\": \"CANARY\"}'}}",
     {"gcp": {"type": "idToken", "audience": "x", "credential": "<redacted>"}}),
    ("{azure: {implicit: {}}}", {"azure": {"implicit": {}}}),
    ("{azure: {developerImplicit: {}}}", {"azure": {"developerImplicit": {}}}),
    ("{azure: {explicitConfig: {workloadIdentity: {}}}}", {"azure": {"explicitConfig": {"workloadIdentity": {}}}}),
    ("{azure: {explicitConfig: {managedIdentity: {}}}}", {"azure": {"explicitConfig": {"managedIdentity": {}}}}),
    ("{azure: {explicitConfig: {managedIdentity: {userAssignedIdentity: {objectId: o}}}}}",
     {"azure": {"explicitConfig": {"managedIdentity": {"userAssignedIdentity": {"objectId": "o"}}}}}),
    ("{azure: {explicitConfig: {clientSecret: {tenant_id: t, client_id: c, client_secret: CANARY}}}}",
     {"azure": {"explicitConfig": {"clientSecret": {"tenant_id": "t", "client_id": "c", "client_secret": "<redacted>"}}}}),
)  # fmt: skip


def auth_of(gateway: Gateway) -> Any:
    [backend] = gateway.binds[0].listeners[0].routes[0].backends
    return backend.policies.auth


@pytest.mark.parametrize(("text", "shown"), SHOWN, ids=[text[:50] for text, _ in SHOWN])
def test_what_is_written_is_shown_without_its_secrets(text: str, shown: Any, loaded: Callable[..., Gateway]) -> None:
    auth = auth_of(loaded(f"{HEAD}{text}}}}}]"))
    assert backend_auth.dump(auth) == shown
    assert "CANARY" not in repr(auth) + json.dumps(shown)


REFUSED = (
    ("{aws: {region: EU}}", "aws.region: a region consists of"),
    ("{aws: {serviceName: 'a b'}}", "aws.serviceName: a service consists of"),
    ("{aws: {accessKeyId: a}}", "secretAccessKey"),
    ("{aws: {assumeRole: {roleArn: x}}}", "assumeRole.roleArn: not the ARN of a role"),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', sessionName: 'a b'}}}}}}", "assumeRole.sessionName: a session name must have"),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', sessionName: {{expression: 'nope('}}}}}}}}", "sessionName.expression"),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', tags: [{{key: a}}]}}}}}}", "a tag needs either"),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', tags: [{{key: a, value: b}}, {{key: a, value: c}}]}}}}}}", "defined twice"),
    (f"{{aws: {{assumeRole: {{roleArn: '{ROLE}', tags: [{', '.join('{key: a, value: b}' for _ in range(51))}]}}}}}}", "tags"),
    ("{gcp: {credential: '[]'}}", "gcp.credential: not the JSON of a credential"),
    ("{gcp: {credential: '{\"type\": \"secret\"}'}}", "whose type must be one of"),
    ("{gcp: {credential: {file: /nowhere/at/all}}}", "cannot read"),
    ("{azure: {explicitConfig: {clientSecret: {tenant_id: ../x, client_id: c, client_secret: s}}}}", "tenant_id: a tenant must be"),
    ("{azure: {}}", "azure"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_credentials_that_cannot_work_are_refused(text: str, fault: str, faults: Callable[..., list[str]]) -> None:
    found = faults(f"{HEAD}{text}}}}}]")
    assert any(fault in line for line in found), found


def model_auth(loaded: Callable[..., Gateway], provider: str) -> Any:
    gateway = loaded(f"gateways: {{default: {{port: 1}}}}\nroutes: [{{backends: [{{ai: {{name: a, {provider}}}}}]}}]")
    [backend] = gateway.binds[0].listeners[0].routes[0].backends
    [[model]] = backend.backend.groups  # type: ignore[union-attr]
    return None if model.policies.auth is None else model.policies.auth.main


def test_models_of_clouds_have_the_credentials_of_their_cloud(loaded: Callable[..., Gateway]) -> None:
    policies = "policies: {backendAuth: {aws: {accessKeyId: a, secretAccessKey: b}}}"
    bedrock = model_auth(loaded, "provider: {bedrock: {region: eu-west-1}}")
    assert bedrock == AwsAuth(region="eu-west-1", service="bedrock")
    keyed = model_auth(loaded, f"provider: {{bedrock: {{}}}}, {policies}")
    assert (keyed.region, keyed.service, keyed.keys is None) == ("us-east-1", "bedrock", False)
    assert model_auth(loaded, "provider: {vertex: {projectId: p}}") == GcpAuth()
    foundry = model_auth(loaded, "provider: {azure: {resourceName: r, resourceType: foundry}}")
    assert foundry == AzureAuth(scope="https://ai.azure.com/.default")
    assert model_auth(loaded, "provider: {openAI: {}}") is None


def test_where_models_of_vertex_are(loaded: Callable[..., Gateway]) -> None:
    hosts = {"global": "aiplatform.googleapis.com", "us": "aiplatform.us.rep.googleapis.com",
             "europe-west4": "europe-west4-aiplatform.googleapis.com"}  # fmt: skip
    for region, host in hosts.items():
        text = f"llm: {{port: 1, models: [{{name: m, provider: vertex, params: {{vertexProject: p, vertexRegion: {region}}}}}]}}"
        [backend] = loaded(text).binds[0].listeners[0].routes[0].backends
        assert backend.backend.models[0].provider.endpoint.host == host  # type: ignore[union-attr]


def test_reranking_is_another_service_of_a_cloud(loaded: Callable[..., Gateway]) -> None:
    def rerank(model: str) -> Any:
        [backend] = loaded(f"llm: {{port: 1, models: [{{name: m, {model}}}]}}").binds[0].listeners[0].routes[0].backends
        return backend.backend.models[0].provider.rerank  # type: ignore[union-attr]

    assert rerank("provider: bedrock, params: {awsRegion: eu-west-1}").host == "bedrock-agent-runtime.eu-west-1.amazonaws.com"
    vertex = rerank("provider: vertex, params: {vertexProject: p}")
    assert (vertex.host, vertex.port, vertex.tls is None) == ("discoveryengine.googleapis.com", 443, False)
    assert rerank("provider: bedrock, params: {baseUrl: 'http://h:1'}") is None
    assert rerank("provider: openai") is None
