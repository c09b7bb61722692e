"""Where the page may send requests."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from headgate.admin.targets import addresses, targets, watched
from headgate.config.load import TextSource, load
from headgate.ir.gateway import Gateway


def gateway(text: str) -> Gateway:
    return load(TextSource(textwrap.dedent(text))).gateway


def found(text: str) -> dict[str, Any]:
    return targets(gateway(text))


def test_ports_models_and_mcp_endpoints_of_the_sections() -> None:
    kinds = found("""
        gateways: {default: {port: 3000}}
        mcp: {gateways: default, targets: [{name: a, stdio: {cmd: a}}, {name: b, stdio: {cmd: b}}]}
        llm: {gateways: default, models: [{name: gpt, provider: openai}, {name: "*", provider: openai}]}
        """)
    place = {"bind": "bind/3000", "port": 3000, "tls": False, "host": "localhost"}
    assert kinds["ports"] == [{"listener": "default/default.default", **place, "path": "/"}]
    assert kinds["models"] == [
        {"route": "internal/llm:request", **place, "path": "/v1/chat/completions", "models": ["gpt", "*"]}
    ]
    servers = [{"name": name, "kind": "process", "address": name} for name in ("a", "b")]
    assert kinds["mcp"] == [
        {"route": "internal/default", **place, "path": "/mcp", "backend": "mcp", "targets": ["a", "b"], "servers": servers}
    ]
    address = kinds["served"][0]["address"]
    assert address.startswith("api.openai.com")
    assert kinds["served"] == [
        {"name": name, "provider": "openai", "address": address, "upstream": None} for name in ("gpt", "*")
    ]


def test_servers_are_shown_without_what_may_be_a_credential() -> None:
    kinds = found("""
        gateways: {default: {port: 3000}}
        mcp:
          gateways: default
          targets:
          - {name: web, mcp: {host: "https://tools.test/mcp"}}
          - {name: old, sse: {host: "http://old.test:81/sse"}}
          - {name: own, stdio: {cmd: npx, args: ["--token", "sk-never"]}}
        """)
    assert [(one["kind"], one["address"]) for one in kinds["mcp"][0]["servers"]] == [
        ("HTTP", "tools.test:443/mcp"), ("SSE", "old.test:81/sse"), ("process", "npx"),
    ]  # fmt: skip
    assert "sk-never" not in str(kinds)


def test_endpoints_of_services_have_addresses() -> None:
    one = gateway("""
        gateways: {default: {port: 3000}}
        services: [{name: shop, namespace: prod, hostname: shop.test, ports: {80: 8080}}]
        workloads:
        - {uid: w1, name: w1, namespace: prod, workloadIps: [10.0.0.1], services: {prod/shop.test: {80: 8080}}}
        - {uid: w2, name: w2, namespace: prod, workloadIps: ["fd00::2"], services: {prod/shop.test: {80: 8081}}}
        """)
    [first, second] = [(key, shown) for (_, key), shown in addresses(one).items()]
    assert (first, second) == (("w1", "10.0.0.1:8080"), ("w2", "[fd00::2]:8081"))
    assert set(addresses(one)) == {(owner, key) for _, owner, key in watched(one)}


@pytest.mark.parametrize(
    ("hostnames", "match", "host", "path"),
    [
        ("", "{pathPrefix: /}", "localhost", "/v1/chat/completions"),
        ("", "{pathPrefix: /openai}", "localhost", "/openai/v1/chat/completions"),
        ("", "{pathPrefix: /openai/v1}", "localhost", "/openai/v1/chat/completions"),
        ("", "{pathPrefix: /v1/chat/completions}", "localhost", "/v1/chat/completions"),
        ("", "{exact: /ask}", "localhost", "/ask"),
        ("", "{regex: /v1/.*}", "localhost", "/v1/chat/completions"),
        ("hostnames: [api.test, b.test]", "{pathPrefix: /}", "b.test", "/v1/chat/completions"),
        ('hostnames: ["*.api.test"]', "{pathPrefix: /}", "any.api.test", "/v1/chat/completions"),
    ],
)
def test_the_place_leads_to_the_route(hostnames: str, match: str, host: str, path: str) -> None:
    [row] = found(f"""
        gateways: {{default: {{port: 3000}}}}
        routes:
        - name: r
          {hostnames}
          matches: [{{path: {match}}}]
          backends: [{{ai: {{name: x, provider: {{openAI: {{model: gpt}}}}}}}}]
        """)["models"]
    assert (row["host"], row["path"], row["models"]) == (host, path, ["gpt"])


def test_watched_endpoints_are_those_of_the_dump() -> None:
    one = gateway("""
        gateways: {default: {port: 3000}}
        services: [{name: shop, namespace: prod, hostname: shop.test, ports: {80: 8080}}]
        workloads:
        - {uid: w1, name: w1, namespace: prod, workloadIps: [10.0.0.1], services: {prod/shop.test: {80: 8080}}}
        - {uid: w2, name: w2, namespace: prod, workloadIps: [10.0.0.2]}
        backends:
        - {name: plain, host: "a.test:80"}
        - {name: watched, host: "b.test:80", policies: {health: {unhealthyExpression: "response.code >= 500"}}}
        """)
    rows = list(watched(one))
    assert [(backend, key) for backend, _, key in rows] == [("prod/shop", "w1"), (rows[1][0], "b.test:80")]
    assert "watched" in rows[1][0]
