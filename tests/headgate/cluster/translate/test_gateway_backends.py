"""GatewayBackends as backends of the file, and what their statuses say."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, entries, gateway, gateway_backend, gateway_class, http_route, made, own, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway_backends import (
    TranslatedBackend,
    called_by,
    file_name,
    named,
    status,
    translate_backend,
)

STATIC = {"host": "away.test", "port": 80}
TOOLS = {"labels": {"tools": "yes"}}


def tool(name: str, *ports: Json, labels: dict[str, str] | None = None, **annotations: str) -> Json:
    found = service(name, *(ports or ({"port": 80, "appProtocol": "headgate.dev/mcp"},)))
    found["metadata"] |= {"labels": labels or {"tools": "yes"}, "annotations": {f"headgate.dev/{key}": value for key, value in annotations.items()}}
    return found


SNAPSHOT = Snapshot.of([
    entries("Secret", "shop/key", Authorization="k"), service("shop/mcp"), tool("shop/a"), tool("shop/b", labels={"tools": "no"}),
    tool("shop/c", {"port": 81, "appProtocol": "headgate.dev/mcp-sse"}, {"port": 82, "appProtocol": "headgate.dev/mcp"}, {"port": 83}),
    tool("store/d", **{"mcp-path": "/tools", "mcp-target-name": "shelf"}), made("Namespace", "store", {}, "v1", labels={"team": "store"}),
])  # fmt: skip


def form(**spec: Any) -> Json:
    found = translate_backend(SNAPSHOT, gateway_backend(**spec))
    assert isinstance(found, TranslatedBackend), found
    return found.form


def refusal(**spec: Any) -> str:
    found = translate_backend(SNAPSHOT, gateway_backend(**spec))
    assert isinstance(found, Unmet)
    assert (found.reason, found.message.startswith("failed to translate backend: ")) == ("TranslationError", True)
    return found.message.removeprefix("failed to translate backend: ")


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        ({"static": {"host": "a.test", "port": 80}}, {"host": "a.test:80"}),
        ({"static": {"host": "::1", "port": 80}}, {"host": "[::1]:80"}),
        ({"static": {"unixPath": "/run/a.sock"}}, {"host": "unix:/run/a.sock"}),
        ({"a2a": {"host": "a.test", "port": 80}}, {"host": "a.test:80", "policies": {"a2a": {}}}),
        (
            {"a2a": {"host": "a.test", "port": 80}, "policies": {"http": {"version": "HTTP1"}}},
            {"host": "a.test:80", "policies": {"a2a": {}, "http": {"version": "HTTP/1.1"}}},
        ),
        ({"dynamicForwardProxy": {"allowedHosts": ["*.a.test"]}}, {"dynamic": {"allowedHosts": ["*.a.test"]}}),
        (
            {"aws": {"agentCore": {"agentRuntimeArn": "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/x-abc", "qualifier": "q"}}},
            {"aws": {"agentCore": {"agentRuntimeArn": "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/x-abc", "qualifier": "q"}}},
        ),
        (
            {"ai": {"provider": {"openai": {"model": "m"}}}, "policies": {"auth": {"secretRef": {"name": "key"}}}},
            {"ai": {"name": "away", "provider": {"openAI": {"model": "m"}}}, "policies": {"backendAuth": {"key": {"value": "k"}}}},
        ),
        (
            {"ai": {"groups": [
                {"providers": [{"name": "a", "openai": {}, "policies": {"auth": {"key": "x"}}}]}, {"providers": [{"name": "b", "gemini": {}}]},
            ]}},
            {"ai": {"groups": [
                {"providers": [{"name": "a", "provider": {"openAI": {}}, "policies": {"backendAuth": {"key": {"value": "x"}}}}]},
                {"providers": [{"name": "b", "provider": {"gemini": {}}}]},
            ]}},
        ),
    ],
)  # fmt: skip
def test_kinds_are_those_of_the_file(spec: Json, ours: Json) -> None:
    assert form(**spec) == ours


def test_targets_of_mcp() -> None:
    targets = [
        {"name": "one", "static": {"host": "a.test", "port": 80}},
        {"name": "two", "static": {"host": "b.test", "port": 81, "protocol": "SSE", "policies": {"auth": {"key": "x"}}}},
        {"name": "three", "static": {"backendRef": {"name": "mcp"}, "port": 8080, "path": "/tools"}},
    ]
    assert form(mcp={"targets": targets, "sessionRouting": "Stateless", "failureMode": "FailOpen", "prefixMode": "Always"}) == {
        "mcp": {
            "targets": [
                {"name": "one", "mcp": {"host": "a.test", "port": 80, "path": "/mcp"}},
                {"name": "two", "sse": {"host": "b.test", "port": 81, "path": "/sse"}, "policies": {"backendAuth": {"key": {"value": "x"}}}},
                {"name": "three", "mcp": {"host": "mcp.shop.svc.cluster.local", "port": 8080, "path": "/tools"}},
            ],
            "statefulMode": "Stateless", "failureMode": "FailOpen", "prefixMode": "Always",
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("selector", "targets"),
    [
        ({"services": {"matchLabels": {"tools": "yes"}}}, [("a", "mcp", 80, "/mcp"), ("c-81", "sse", 81, "/sse"), ("c-82", "mcp", 82, "/mcp")]),
        ({"namespaces": {"matchLabels": {"team": "store"}}}, [("shelf", "mcp", 80, "/tools")]),
    ],
)
def test_targets_are_found_by_labels(selector: Json, targets: list[tuple[str, str, int, str]]) -> None:
    found = form(mcp={"targets": [{"name": "all", "selector": selector}]})["mcp"]["targets"]
    assert [(one["name"], kind, one[kind]["port"], one[kind]["path"]) for one in found for kind in one if kind != "name"] == targets
    assert {one[kind]["host"].partition(".")[2] for one in found for kind in one if kind != "name"} <= {"shop.svc.cluster.local", "store.svc.cluster.local"}


def test_what_cannot_be_said_is_told() -> None:
    none = {"targets": [{"name": "x", "selector": {"services": {"matchLabels": {"tools": "none"}}}}]}
    assert "match no port" in refusal(mcp=none)
    twice = {"name": "a", "static": {"host": "a.test", "port": 80}}
    assert refusal(mcp={"targets": [twice, {"name": "x", "selector": {"services": {}}}]}) == "several targets are named a"
    gone = {"name": "a", "static": {"backendRef": {"name": "gone"}, "port": 80}}
    assert refusal(mcp={"targets": [gone]}) == "Service shop/gone not found"
    static = {"host": "a.test", "port": 80}
    assert refusal(static=static, policies={"auth": {"secretRef": {"name": "gone"}}}) == "policies.auth: Secret shop/gone not found"
    named_policy = {"name": "a", "static": {**static, "policies": {"auth": {"secretRef": {"name": "gone"}}}}}
    assert refusal(mcp={"targets": [named_policy]}) == "target a: policies.auth: Secret shop/gone not found"
    # What only the loader sees.
    assert refusal(static=static, policies={"health": {"unhealthyCondition": "1 +"}}).endswith("the expression ends too early")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"static": {"host": "a.test", "port": 80}}, ("True", "Accepted", "Backend successfully accepted")),
        ({"static": {"host": "a.test", "port": 80}, "policies": {"auth": {"secretRef": {"name": "gone"}}}},
         ("False", "TranslationError", "failed to translate backend: policies.auth: Secret shop/gone not found")),
    ],
)  # fmt: skip
def test_a_status_says_whether_it_is_accepted(spec: Json, said: tuple[str, str, str]) -> None:
    found = status(SNAPSHOT, gateway_backend(**spec))
    assert (found.kind.kind, str(found.key)) == ("GatewayBackend", "shop/away")
    (only,) = found.content["conditions"]
    assert (only["type"], only["observedGeneration"]) == ("Accepted", 1)
    assert (only["status"], only["reason"], only["message"]) == said


def test_those_that_routes_use_have_names_in_the_file() -> None:
    dynamic = gateway_backend("shop/any", dynamicForwardProxy={"allowedPorts": [80]})
    broken = gateway_backend("shop/broken", static={"host": "a.test", "port": 80}, policies={"auth": {"secretRef": {"name": "gone"}}})
    snapshot = Snapshot.of([gateway_backend("shop/b"), gateway_backend("shop/a"), gateway_backend("shop/c"), dynamic, broken])
    used = {ObjectKey("shop", name) for name in ("b", "a", "any", "broken", "gone")}
    found = list(named(snapshot, used))
    names = ("shop/a", "shop/any", "shop/b")
    assert [(one.key, one.place, one.value["name"]) for one in found] == [(f"backend/{name}", "backends", name) for name in names]
    assert file_name(ObjectKey("shop", "a")) == "shop/a"


def test_policies_of_backends_call_services() -> None:
    judge = gateway_backend("shop/judge", static=STATIC, policies={"tunnel": {"backendRef": to("proxy")}})
    asked = {"extAuth": {"backendRef": own("judge"), "grpc": {}}}
    away = gateway_backend("shop/away", static=STATIC, policies=asked)
    snapshot = Snapshot.of([judge, away, service("shop/proxy")])
    made = translate_backend(snapshot, away)
    assert isinstance(made, TranslatedBackend)
    assert made.form["policies"]["extAuthz"]["backend"] == "shop/judge"
    assert called_by(snapshot, {ObjectKey("shop", "away")}) == (
        {ObjectKey("shop", "proxy")}, {ObjectKey("shop", "away"), ObjectKey("shop", "judge")},
    )  # fmt: skip


def test_a_backend_that_its_own_policies_call_is_not_accepted() -> None:
    first = gateway_backend("shop/a", static=STATIC, policies={"extAuth": {"backendRef": own("b"), "grpc": {}}})
    second = gateway_backend("shop/b", static=STATIC, policies={"extAuth": {"backendRef": own("a"), "grpc": {}}})
    made = translate_backend(Snapshot.of([first, second]), first)
    assert isinstance(made, Unmet)
    assert "GatewayBackend shop/a is called by its own policies" in made.message


def test_authentication_of_mcp_clients_stands_at_the_routes_to_the_backend() -> None:
    asked = {"authentication": {"issuer": "https://i.test", "jwks": {"url": "https://i.test/keys"}}}
    targets = {"targets": [{"name": "x", "static": {"host": "a.test", "port": 80}}]}
    backend = gateway_backend("shop/tools", mcp=targets, policies={"mcp": asked})
    both = {"name": "both", "matches": [{"path": {"value": "/b"}}], "backendRefs": [own("tools"), own("tools")]}
    found = everything(Snapshot.of([gateway_class(), gateway(), http_route("shop/cart", {"backendRefs": [own("tools")]}, both), backend]), {})
    file = assembled(found.gateways[ObjectKey("edge", "main")])
    [route] = file["binds"][0]["listeners"][0]["routes"]
    assert route["policies"] == {"mcpAuthentication": {"issuer": "https://i.test", "jwks": {"url": "https://i.test/keys"}}}
    assert "policies" not in file["backends"][0]
    [status_of_route] = (one.content for one in found.statuses if one.kind.kind == "HTTPRoute")
    told = {one["type"]: one["message"] for one in status_of_route["parents"][0]["conditions"]}
    assert "it must be the only backend" in told["PartiallyInvalid"]
