"""Limits with conditions, wherever limits may stand."""

from __future__ import annotations

import pytest

from headgate.config.load import TextSource, load

LIMITS = """{conditional: [
  {condition: 'apiKey.team == "red"', requests: 5, unit: Minutes}, {condition: 'true', maxTokens: 3, tokensPerFill: 3, fillInterval: 1s},
  {tokens: 7, unit: Hours, burst: 2}]}"""
HEAD = "gateways: {default: {port: 1234}}\n"
ROUTE = "routes: [{name: r, policies: {directResponse: {status: 200, body: x}}}]\n"
PLACES = {
    "route": HEAD + "routes: [{name: r, policies: {directResponse: {status: 200, body: x}, localRateLimit: LIMITS}}]",
    "llm": HEAD + "llm: {gateways: [default], models: [{name: '*', provider: openai}], policies: {localRateLimit: LIMITS}}",
    "mcp": "mcp: {port: 1234, targets: [{name: t, mcp: {host: 'http://127.0.0.1:1/mcp'}}], policies: {localRateLimit: LIMITS}}",
    "targeted route": HEAD + ROUTE + "policies: [{name: {name: p, namespace: default}, target: {route: {name: r, namespace: default}},"
    " policy: {localRateLimit: LIMITS}}]",
    "gateway": HEAD + ROUTE + "policies: [{name: {name: p, namespace: default}, target: {gateway: {gatewayName: default,"
    " gatewayNamespace: default}}, policy: {localRateLimit: LIMITS}}]",
}


@pytest.mark.parametrize("place", PLACES)
def test_conditions_are_read_wherever_limits_are(place: str) -> None:
    gateway = load(TextSource(PLACES[place].replace("LIMITS", LIMITS)), environ={}).gateway
    [route] = [route for bind in gateway.binds for listener in bind.listeners for route in listener.routes]
    assert [
        (one.condition, one.conditional, one.tokens, one.max_tokens, one.tokens_per_fill, one.fill_interval_ns)
        for one in route.policies.local_rate_limits
    ] == [
        ('apiKey.team == "red"', True, False, 5, 5, 60 * 10**9),
        ("true", True, False, 3, 3, 10**9),
        (None, True, True, 9, 7, 3600 * 10**9),
    ]
