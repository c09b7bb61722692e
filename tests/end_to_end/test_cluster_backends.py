"""GatewayBackends with credentials and guards of their own, served by a gateway."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import httpx
import pytest
from manifests import endpoints, entries, gateway_backend, gateway_class, http_route, listener, own, service, to
from manifests import gateway as gateway_manifest
from tests.end_to_end.cluster_file_rig import PORT, configuration
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.running import Gateway

pytestmark = pytest.mark.warm

CHAT = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "fine"}}],
}  # fmt: skip


def exchanged(stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
    form = parse_qs(stand_in.last.body.decode())
    whole({"access_token": f"for-{form['subject_token'][0]}", "token_type": "Bearer", "expires_in": 60})(stand_in, handler)


def test_a_backend_gets_an_exchanged_token(
    gateway: Callable[..., Gateway], stand_in: Callable[..., StandIn], echo: int
) -> None:
    """The authorization server is a Service, which is reached at its endpoints."""
    server = stand_in(exchanged)
    exchange = {
        "backendRef": to("idp"), "path": "/token", "audiences": ["api"],
        "clientAuth": {"clientId": "gw", "secretRef": {"name": "app"}},
    }  # fmt: skip
    static = {"host": "127.0.0.1", "port": echo}
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/cart", {"backendRefs": [own("away")]}),
        gateway_backend("shop/away", static=static, policies={"auth": {"oauthTokenExchange": exchange}}),
        service("shop/idp"), endpoints("shop/idp-1", "idp", ["127.0.0.1"], server.port), entries("Secret", "shop/app", clientSecret="s3"),
    ]  # fmt: skip
    running = gateway(configuration(cluster))
    found = httpx.get(f"http://127.0.0.1:{running.port}/", headers={"authorization": "Bearer mine"})
    assert [value for name, value in found.json()["headers"] if name == "authorization"] == ["Bearer for-mine"]
    assert (server.last.path, server.last.headers["authorization"][:6]) == ("/token", "Basic ")


def test_a_prompt_is_guarded(gateway: Callable[..., Gateway], stand_in: Callable[..., StandIn]) -> None:
    provider = stand_in(whole(CHAT))
    guard = {"request": [{"regex": {"action": "Reject", "matches": ["open ses.me"], "response": {"statusCode": 451, "message": "no"}}}]}
    ai = {"provider": {"openai": {}, "host": "127.0.0.1", "port": provider.port}}
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/chat", {"backendRefs": [own("models")]}),
        gateway_backend("shop/models", ai=ai, policies={"ai": {"promptGuard": guard}}),
    ]  # fmt: skip
    running = gateway(configuration(cluster))

    def ask(words: str) -> httpx.Response:
        body = {"model": "m", "messages": [{"role": "user", "content": words}]}
        return httpx.post(f"http://127.0.0.1:{running.port}/v1/chat/completions", json=body)

    assert ask("hello").json()["choices"][0]["message"]["content"] == "fine"
    refused = ask("open sesame")
    assert (refused.status_code, len(provider.seen)) == (451, 1)


def test_a_provider_is_a_service_with_endpoints(gateway: Callable[..., Gateway], stand_in: Callable[..., StandIn]) -> None:
    """Nothing resolves the name of the Service here, so it is reached at its endpoints, of which those count that are ready."""
    ready, more, waiting = (stand_in(whole(CHAT)) for _ in range(3))
    unready = [{"addresses": ["127.0.0.1"], "conditions": {"ready": False}}]
    custom = {"formats": [{"type": "Completions"}], "backendRef": to("model", 80)}
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/chat", {"backendRefs": [own("models")]}),
        gateway_backend("shop/models", ai={"provider": {"custom": custom}}), service("shop/model", {"port": 80}),
        endpoints("shop/model-1", "model", ["127.0.0.1"], ready.port), endpoints("shop/model-2", "model", ["127.0.0.2"], more.port),
        endpoints("shop/model-3", "model", [], waiting.port, endpoints=unready),
    ]  # fmt: skip
    running = gateway(configuration(cluster))
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    for _ in range(4):
        answer = httpx.post(f"http://127.0.0.1:{running.port}/v1/chat/completions", json=body)
        assert answer.json()["choices"][0]["message"]["content"] == "fine"
    assert ready.seen
    assert not waiting.seen
    assert {one.headers["host"] for one in (*ready.seen, *more.seen)} == {"model.shop.svc.cluster.local"}
