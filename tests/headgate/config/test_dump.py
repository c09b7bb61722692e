"""The dump: shapes, order, and no secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from headgate.config.dump import Runtime, dump, frontend_policies
from headgate.config.shape.frontend import FRONTEND_HTTP
from headgate.document.secret import REDACTED
from headgate.ir.gateway import Gateway

RUNTIME = Runtime(generation=7, workers=2, started_unix_s=1, build={"version": "0.1.0"})
FULL = """
gateways: {default: {port: 3000}}
config: {session: {key: %s}, statsAddr: localhost:1, readinessAddr: "off"}
routes:
- name: a
  matches: [{path: {pathPrefix: /a}, headers: [{name: x, value: {exact: y}}]}]
  policies: {backendAuth: {key: canary-1}, localRateLimit: [{requests: 1, unit: Hours}]}
  backends:
  - host: "h:1"
    policies: {backendAuth: {key: {value: canary-2, location: {header: {name: x-key}}}}, backendTLS: {}}
  - {backend: named, weight: 2}
  - {backend: missing}
- {name: tool, backends: [{mcp: {targets: [{name: t, stdio: {cmd: c, env: {E: canary-3}}}]}}]}
backends: [{name: named, host: "n:1", policies: {backendAuth: {key: canary-4}}}]
llm: {models: [{name: m, provider: openai, params: {apiKey: canary-5, model: p}}]}
mcp: {port: 4, targets: [{name: r, mcp: {host: "h:2"}, policies: {backendAuth: {key: canary-6}}}]}
policies:
- {name: {name: p, namespace: n}, target: {gateway: {gatewayName: default, gatewayNamespace: default, port: 3000}},
   policy: {backendAuth: {key: canary-7}}}
""" % ("ca" * 32)


@pytest.fixture
def dumped(loaded: Callable[..., Gateway]) -> dict[str, Any]:
    return dump(loaded(FULL), RUNTIME)


def test_no_secret_shows_and_its_field_stays(dumped: dict[str, Any]) -> None:
    text = json.dumps(dumped)
    assert "canary" not in text
    assert "caca" not in text
    assert text.count(REDACTED) >= 7
    assert dumped["config"]["sessionEncoder"] == {"key": REDACTED}


def test_the_generation_shows(dumped: dict[str, Any]) -> None:
    assert dumped["config"]["generation"] == 7
    assert dumped["config"]["numWorkerThreads"] == 2
    assert dumped["version"] == {"version": "0.1.0"}


def test_two_dumps_of_equal_configurations_are_equal_byte_for_byte(loaded: Callable[..., Gateway]) -> None:
    first, second = (json.dumps(dump(loaded(FULL), RUNTIME), indent=2) for _ in range(2))
    assert first == second


def test_the_top_level_keys_are_all_there(dumped: dict[str, Any]) -> None:
    assert set(dumped) == {
        "workloads", "services", "binds", "routes", "policies", "backends", "models", "version", "config",
    }  # fmt: skip


def test_shapes_of_binds_listeners_and_routes(dumped: dict[str, Any]) -> None:
    bind = dumped["binds"][0]
    assert {key: bind[key] for key in ("key", "address", "protocol", "tunnelProtocol", "mode")} == {
        "key": "bind/3000", "address": "[::]:3000", "protocol": "http", "tunnelProtocol": "direct", "mode": "standard",
    }  # fmt: skip
    listener = bind["listeners"]["default/default.default"]
    assert (listener["gatewayName"], listener["hostname"], listener["protocol"]) == ("default", "", "HTTP")
    route = listener["routes"]["default/a"]
    assert route["matches"] == [
        {"path": {"pathPrefix": "/a"}, "headers": [{"name": "x", "value": {"exact": "y"}}]}
    ]
    kinds = [next(key for key in one if key not in ("weight", "inlinePolicies")) for one in route["backends"]]
    assert kinds == ["inlineBackend", "backend", "invalid"]
    assert [one["weight"] for one in route["backends"]] == [1, 2, 1]
    assert route["backends"][0]["inlineBackend"] == "h:1"
    limit = {"maxTokens": 1, "tokensPerFill": 1, "fillInterval": "3600s", "type": "requests"}
    assert route["inlinePolicies"] == [{"localRateLimit": [limit]}]
    assert listener["routes"]["internal/llm:request"]["llmRouter"] == "llm:router"


def test_backends_and_models_are_listed_by_key(dumped: dict[str, Any]) -> None:
    names = [(kind, one["name"]) for entry in dumped["backends"] for kind, one in entry["backend"].items()]
    assert ("host", "named") in names
    assert ("llmRouter", "llm:router") in names
    assert ("ai", "llm:model:m:0") in names
    assert ("mcp", "mcp") in names
    (model,) = dumped["models"]
    assert model["kind"]["concrete"]["policies"] == {"model": "p"}
    assert model["routerKey"] == "llm:router"


def test_policies_show_their_target(dumped: dict[str, Any]) -> None:
    found = {entry["key"]: entry for entry in dumped["policies"]}
    assert set(found) == {"frontend/accessLog", "frontend/http", "frontend/tcp", "frontend/tls", "n/p"}
    assert found["n/p"]["target"] == {
        "gateway": {
            "gatewayName": "default", "gatewayNamespace": "default", "port": 3000, "listenerName": None,
        }
    }  # fmt: skip
    assert found["n/p"]["policy"] == {"backend": {"backendAuth": {}}}


def test_every_setting_of_http_shows(loaded: Callable[..., Gateway]) -> None:
    said: dict[str, Any] = {
        "maxBufferSize": 1000, "maxModelResponseSize": 2000, "http1MaxHeaders": 50, "http1IdleTimeout": "7s",
        "headersWithUnderscores": "keep", "pathNormalization": "refuse", "http1HeaderCase": "preserve", "http2WindowSize": 70000,
        "http2ConnectionWindowSize": 80000, "http2FrameSize": 20000, "http2MaxHeaderSize": 9000, "http2KeepaliveInterval": "8s",
        "http2MaxHeaders": 60, "http2MaxConcurrentStreams": 40, "http2MaxContinuations": 0, "http2MaxResets": 30, "http2MaxControlFrames": 20,
        "http2KeepaliveTimeout": "9s", "stallTimeout": "6s", "maxConnectionDuration": "1m0s", "requestId": "trust",
    }  # fmt: skip
    assert set(said) == set(FRONTEND_HTTP.fields), "each of the file"
    assert frontend_policies(loaded(f"gateways: {{g: {{port: 1}}}}\nfrontendPolicies: {{http: {said}}}".replace("1m0s", "60s")).frontend)["http"] == said
