"""Agent runtimes of a cloud, and which backends may be agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.agent_runtime import AMBIENT, dump
from headgate.config.backends import NO_AGENT
from headgate.ir.backend import AgentRuntimeBackend, RouteBackend, ServiceBackend
from headgate.ir.gateway import Gateway
from headgate.ir.policy.key_auth import KeyAuth

HEAD = "gateways: {default: {port: 1}}\n"
ARN = "arn:aws:bedrock-agentcore:eu-west-1:123456789012:runtime/agent_x-AbCdEf1234"
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
MCP = "mcp: {targets: [{name: t, mcp: {host: 'http://h/mcp'}}]}"
AI = "ai: {name: m, provider: {openAI: {}}}"
Loaded = Callable[..., Gateway]
Faults = Callable[..., list[str]]


def choices(gateway: Gateway) -> list[RouteBackend]:
    return [one for route in gateway.binds[0].listeners[0].routes for one in route.backends]


def runtime(arn: str = ARN, more: str = "", policies: str = "") -> str:
    return f"routes: [{{backends: [{{aws: {{agentCore: {{agentRuntimeArn: '{arn}'{more}}}}}{policies}}}]}}]"


def test_a_runtime_is_a_host_of_its_region(loaded: Loaded) -> None:
    [choice] = choices(loaded(HEAD + runtime(more=", qualifier: DEFAULT"), KEYS))
    backend = choice.backend
    assert isinstance(backend, AgentRuntimeBackend)
    assert backend.endpoint.address == "bedrock-agentcore.eu-west-1.amazonaws.com:443"
    assert backend.endpoint.tls is not None
    assert (backend.name, backend.qualifier) == ("aws/agent_x-AbCdEf1234", "DEFAULT")
    assert choice.policies.auth == AMBIENT
    assert dump(backend) == {"agentCore": {"agentRuntimeArn": ARN, "qualifier": "DEFAULT"}}


def test_a_named_runtime_and_one_with_credentials_of_its_own(loaded: Loaded) -> None:
    text = f"backends: [{{name: rt, aws: {{agentCore: {{agentRuntimeArn: '{ARN}'}}}}, policies: {{backendAuth: {{key: k}}}}}}]\n"
    [choice] = choices(loaded(HEAD + text + "routes: [{backends: [{backend: /rt}]}]", {}))
    assert isinstance(choice.backend, AgentRuntimeBackend)
    assert (choice.backend.name, dump(choice.backend)) == ("/rt", {"agentCore": {"agentRuntimeArn": ARN}})
    assert choice.policies.auth is not None
    assert isinstance(choice.policies.auth.main, KeyAuth)


@pytest.mark.parametrize("arn", [
    "", "agent", ARN.replace("aws:", "aws-cn:", 1), ARN.replace("bedrock-agentcore", "bedrock"), ARN.replace("eu-west-1", ""),
    ARN.replace("123456789012", "12"), ARN.replace("runtime/", "memory/"), ARN + "/more", ARN + " ", ARN.replace("eu-west-1", "eu.evil/"),
])  # fmt: skip
def test_other_arns_are_refused(arn: str, faults: Faults) -> None:
    [told] = faults(HEAD + runtime(arn))
    assert told.startswith("routes[0].backends[0].aws.agentCore.agentRuntimeArn: not the ARN of an agent runtime")


def test_qualifiers_that_are_none(faults: Faults) -> None:
    for text in ("''", "'a b'", f"'{'q' * 129}'"):
        [told] = faults(HEAD + runtime(more=f", qualifier: {text}"))
        assert "a qualifier must have 1 to 128 visible characters" in told


def a2a(text: str, loaded: Loaded) -> list[bool]:
    return [one.policies.a2a for one in choices(loaded(HEAD + text, KEYS))]


@pytest.mark.parametrize(("text", "expected"), [
    ("routes: [{backends: [{host: 'h:1', policies: {a2a: {}}}, {host: 'h:2'}]}]", [True, False]),
    ("routes: [{policies: {a2a: {}}, backends: [{host: 'h:1'}, {host: 'h:2'}]}]", [True, True]),
    ("backends: [{name: b, host: 'h:1', policies: {a2a: {}}}]\nroutes: [{backends: [{backend: /b}, {host: 'h:2'}]}]", [True, False]),
    (runtime(policies=", policies: {a2a: {}}"), [True]),
    ("policies: [{name: {name: p, namespace: n}, target: {route: {name: r, namespace: default}}, policy: {a2a: {}}}]\n"
     "routes: [{name: r, backends: [{host: 'h:1'}]}, {name: s, backends: [{host: 'h:1'}]}]", [True, False]),
    ("policies: [{name: {name: p, namespace: n}, target: {backend: {backend: {name: b, namespace: ''}}}, policy: {a2a: {}}}]\n"
     "backends: [{name: b, host: 'h:1'}]\nroutes: [{backends: [{backend: /b}, {host: 'h:1'}]}]", [True, False]),
    # A gateway's policy is for those of its backends that may be agents.
    ("policies: [{name: {name: p, namespace: n}, target: {gateway: {gatewayName: default, gatewayNamespace: default}}, "
     f"policy: {{a2a: {{}}}}}}]\nroutes: [{{backends: [{{host: 'h:1'}}]}}, {{backends: [{{{MCP}}}]}}]", [True, False]),
])  # fmt: skip
def test_where_agents_may_be_named(text: str, expected: list[bool], loaded: Loaded) -> None:
    assert a2a(text, loaded) == expected


@pytest.mark.parametrize(("protocol", "expected"), [
    ("headgate.dev/a2a", True), ("Headgate.dev/A2A", True), ("kgateway.dev/a2a", True), ("a2a", False), ("http", False),
])  # fmt: skip
def test_services_that_are_agents(protocol: str, expected: bool, loaded: Loaded) -> None:
    services = f"services: [{{name: s, namespace: n, hostname: s.test, ports: {{'80': 81}}, appProtocols: {{'80': {protocol}}}}}]\n"
    gateway = loaded(HEAD + services + "routes: [{backends: [{service: {name: n/s.test, port: 80}}]}]")
    [choice] = choices(gateway)
    assert isinstance(choice.backend, ServiceBackend)
    assert (choice.backend.a2a, choice.policies.a2a) == (expected, expected)


@pytest.mark.parametrize("text", [
    f"routes: [{{backends: [{{{MCP}, policies: {{a2a: {{}}}}}}]}}]",
    f"routes: [{{backends: [{{{AI}, policies: {{a2a: {{}}}}}}]}}]",
    f"backends: [{{name: b, {MCP}, policies: {{a2a: {{}}}}}}]",
    f"backends: [{{name: b, {AI}, policies: {{a2a: {{}}}}}}]",
])  # fmt: skip
def test_other_backends_are_no_agents(text: str, faults: Faults) -> None:
    assert [line.partition(": ")[2].rpartition(" (")[0] for line in faults(HEAD + text)] == [NO_AGENT]


@pytest.mark.parametrize("text", [
    HEAD + f"routes: [{{policies: {{a2a: {{}}}}, backends: [{{{MCP}}}]}}]",
    "mcp: {port: 3000, policies: {a2a: {}}, targets: [{name: t, mcp: {host: 'http://h/mcp'}}]}",
])  # fmt: skip
def test_routes_to_other_backends_are_no_agents(text: str, faults: Faults) -> None:
    assert any(NO_AGENT in line or "a2a of the route is only for host, service and aws backends" in line for line in faults(text))


def test_the_dump_shows_both(loaded: Loaded) -> None:
    from headgate.config.dump_policies import backend_policies

    [choice] = choices(loaded(HEAD + runtime(policies=", policies: {a2a: {}}"), KEYS))
    shown: list[dict[str, Any]] = backend_policies(choice.policies)
    assert shown == [{"backendAuth": {"aws": {}}}, {"a2a": {}}]
