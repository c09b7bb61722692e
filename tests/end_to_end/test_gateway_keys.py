"""Virtual keys in front of the routes, at a gateway or a listener: one credential for all that stands behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.end_to_end.conftest import Gateway
from tests.end_to_end.federation_rig import SAMPLE, Raw
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.provider_stand_in import chat as answer
from tests.end_to_end.stored_rig import ask
from tests.end_to_end.virtual_keys_rig import Start, chat, make, settings

MODELS = """
llm:
  gateways: [default]
  models: [{name: real, provider: openai, params: {apiKey: sk-own, hostOverride: "127.0.0.1:PORT"}}]
mcp:
  gateways: [default]
  targets: [{name: a, stdio: {cmd: PYTHON, args: ["-m", "headgate.sample.mcp_server"]}}]
"""
SHOP = """
routes:
- name: shop
  gateways: [default]
  matches: [{path: {pathPrefix: /shop}}]
  policies: {directResponse: {status: 200, body: open}POLICIES}
"""
TARGETED = """
gateways: {default: {port: {port}}}
policies:
- name: {name: all, namespace: default}
  target: {gateway: {gatewayName: default, gatewayNamespace: default}}PHASE
  policy: {apiKey: {virtualKeys: true}}"""
PLACES = {
    "gateway": "gateways: {default: {port: {port}, apiKey: {virtualKeys: true}}}",
    "listener": "gateways: {default: {port: {port}, listeners: [{name: one, apiKey: {virtualKeys: true}}]}}",
    "phase": TARGETED.replace("PHASE", "\n  phase: gateway"),
    "inherited": TARGETED.replace("PHASE", ""),
}


@pytest.fixture
def provider(stand_in: Any) -> StandIn:
    found: StandIn = stand_in(whole(answer()))
    return found


def begun(gateway: Start, provider: StandIn, tmp_path: Path, place: str, policies: str = "") -> Gateway:
    rest = MODELS.replace("PORT", str(provider.port)).replace("PYTHON", json.dumps(SAMPLE.split('"')[1]))
    text = PLACES[place] + rest + SHOP.replace("POLICIES", policies)
    return gateway(text, settings=settings(f"sqlite://{tmp_path}/keys.db"))


def visit(running: Gateway, **fields: str) -> int:
    return httpx.get(f"{running.url}/shop", headers={name.replace("_", "-"): value for name, value in fields.items()}, timeout=60).status_code


def requests(running: Gateway, name: str) -> int:
    found: int = ask(running, "GET", f"/api/keys/{name}")[1]["usage"]["month"]["requests"]
    return found


@pytest.mark.parametrize("place", PLACES)
def test_a_key_holds_for_all_routes_behind_it(gateway: Start, provider: StandIn, tmp_path: Path, place: str) -> None:
    """Its routes, models and tools, its limits and its end, whatever the request is for."""
    running = begun(gateway, provider, tmp_path, place)
    key = make(running, "all", limits=[{"requests": 2, "per": "month"}])
    assert [visit(running), visit(running, authorization="Bearer hg-none"), chat(running, None).status_code] == [401, 401, 401]
    assert [chat(running, key).status_code, visit(running, authorization=f"Bearer {key}")] == [200, 200]
    assert visit(running, authorization=f"Bearer {key}") == 429
    refused = chat(running, key)
    assert refused.status_code == 429
    assert requests(running, "all") == 2
    shop, models = make(running, "shop", allowedRoutes=["shop"]), make(running, "models", allowedRoutes=["llm"], allowedModels=["other"])
    assert [visit(running, authorization=f"Bearer {one}") for one in (shop, models)] == [200, 403]
    assert [chat(running, one).status_code for one in (shop, models)] == [403, 403]
    assert len(provider.seen) == 1
    tools = Raw(running, authorization=f"Bearer {make(running, 'tools', allowedTools=['echo'])}")
    assert tools.names("tools/list", "tools") == ["echo"]
    assert ask(running, "POST", "/api/keys/shop/revoke", {})[0] == 200
    assert visit(running, authorization=f"Bearer {shop}") == 401


def test_a_route_may_ask_for_the_key_as_well(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """What the gateway has taken is counted once, and is enough for the route."""
    running = begun(gateway, provider, tmp_path, "gateway", ", apiKey: {virtualKeys: true}")
    key = make(running, "ci")
    assert visit(running, authorization=f"Bearer {key}") == 200
    assert requests(running, "ci") == 1
    assert visit(running) == 401


def test_a_route_without_a_match_costs_a_request_and_tells_nothing(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = begun(gateway, provider, tmp_path, "gateway")
    key = make(running, "ci")
    places = [httpx.post(f"{running.url}/elsewhere", headers=fields, timeout=60).status_code for fields in ({}, {"authorization": f"Bearer {key}"})]
    assert places[0] == 401
    assert requests(running, "ci") == 1


def test_a_route_s_own_key_takes_the_place_of_the_inherited_policy(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """The strongest level that sets a kind wins it whole: at a route, over what a gateway's routes inherit."""
    running = begun(gateway, provider, tmp_path, "inherited", ", apiKey: {keys: [{key: of-the-shop}]}")
    key = make(running, "ci")
    assert [visit(running, authorization=f"Bearer {one}") for one in (key, "of-the-shop")] == [401, 200]
    assert chat(running, key).status_code == 200


def test_a_key_of_the_route_does_not_widen_what_the_key_in_front_of_it_may_use(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """Both are asked for, in two places of the request: models and tools are those that both may use."""
    own = "apiKey: {location: {header: {name: x-own}}, keys: [{key: all}, {key: gpt, allowedModels: ['gpt-*']}]}"
    models, _, tools = MODELS.partition("mcp:\n  gateways: [default]\n")
    text = models.replace("name: real,", "name: '*',").replace("models:", f"policies: {{{own}}}\n  models:")
    text += f"mcp:\n  gateways: [default]\n  policies: {{{own}}}\n{tools}"
    text = text.replace("PORT", str(provider.port)).replace("PYTHON", json.dumps(SAMPLE.split('"')[1]))
    running = gateway(PLACES["gateway"] + text, settings=settings(f"sqlite://{tmp_path}/keys.db"))
    key = make(running, "ci", allowedModels=["real", "gpt-5*"], allowedTools=["echo"])

    def ask_model(own: str, model: str) -> int:
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        fields = {"authorization": f"Bearer {key}", "x-own": own}
        return httpx.post(f"{running.url}/v1/chat/completions", json=body, headers=fields, timeout=60).status_code

    assert [ask_model("all", one) for one in ("real", "gpt-5.1", "gpt-4", "other")] == [200, 200, 403, 403]
    assert [ask_model("gpt", one) for one in ("real", "gpt-5.1", "gpt-4", "other")] == [403, 200, 403, 403]
    assert Raw(running, **{"authorization": f"Bearer {key}", "x-own": "all"}).names("tools/list", "tools") == ["echo"]


def test_a_virtual_key_of_the_route_does_not_widen_what_a_plain_key_in_front_of_it_may_use(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    section = MODELS.replace("PORT", str(provider.port)).replace("PYTHON", json.dumps(SAMPLE.split('"')[1])).replace("name: real,", "name: '*',")
    own = "  policies: {apiKey: {virtualKeys: true, location: {header: {name: x-user}}}}\n  models:"
    plain = PLACES["gateway"].replace("virtualKeys: true", "keys: [{key: gpt, allowedModels: ['gpt-*']}]")
    running = gateway(plain + section.replace("  models:", own), settings=settings(f"sqlite://{tmp_path}/keys.db"))
    wide, narrow = make(running, "wide"), make(running, "narrow", allowedModels=["gpt-5*", "other"])

    def call(key: str, model: str) -> int:
        fields = {"authorization": "Bearer gpt", "x-user": key}
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
        return httpx.post(f"{running.url}/v1/chat/completions", headers=fields, json=body, timeout=60).status_code

    assert [call(wide, one) for one in ("gpt-4", "other")] == [200, 403]
    assert [call(narrow, one) for one in ("gpt-5", "gpt-4", "other")] == [200, 403, 403]


def test_a_key_that_is_sent_at_both_places_counts_once(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    running = begun(gateway, provider, tmp_path, "gateway", ", apiKey: {virtualKeys: true, location: {header: {name: x-user}}}")
    key = make(running, "ci")
    assert visit(running, authorization=f"Bearer {key}", x_user=key) == 200
    assert requests(running, "ci") == 1


def test_a_request_with_two_keys_counts_for_both_and_its_tokens_for_that_of_the_route(gateway: Start, provider: StandIn, tmp_path: Path) -> None:
    """One of the gateway, and one of the route from another field: it may use what both may."""
    section = MODELS.replace("PORT", str(provider.port)).replace("PYTHON", json.dumps(SAMPLE.split('"')[1]))
    own = "  policies: {apiKey: {virtualKeys: true, location: {header: {name: x-user}}}}\n  models:"
    running = gateway(PLACES["gateway"] + section.replace("  models:", own), settings=settings(f"sqlite://{tmp_path}/keys.db"))
    outer, user = make(running, "outer", allowedModels=["real", "outer-*"]), make(running, "user")
    narrow = make(running, "narrow", allowedModels=["outer-*"])

    def call(first: str, second: str) -> int:
        fields = {"authorization": f"Bearer {first}", "x-user": second}
        body = {"model": "real", "messages": [{"role": "user", "content": "hi"}]}
        return httpx.post(f"{running.url}/v1/chat/completions", headers=fields, json=body, timeout=60).status_code

    assert [call(outer, user), call(narrow, user)] == [200, 403]
    assert [requests(running, name) for name in ("outer", "user", "narrow")] == [1, 2, 1]
    used = [ask(running, "GET", f"/api/keys/{name}")[1]["usage"]["month"]["tokens"] for name in ("outer", "user")]
    assert used[0] == 0 < used[1]
