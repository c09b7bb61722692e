"""GatewayPolicies of calls to backends, served by a gateway."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from manifests import Json, endpoints, entries, gateway_class, http_route, listener, made, service, to
from manifests import gateway as gateway_manifest
from tests.end_to_end.cluster_file_rig import PORT, configuration
from tests.end_to_end.identity_rig import ISSUER, JWKS, token
from tests.end_to_end.policy_peer import wait_for
from tests.end_to_end.provider_stand_in import StandIn, whole
from tests.end_to_end.running import Gateway, free_port

pytestmark = pytest.mark.warm
API = "gateway.networking.k8s.io"


def policy(name: str, target: Json, **spec: Json) -> Json:
    return made("GatewayPolicy", name, {"targetRefs": [target], **spec}, "headgate.dev/v1alpha1")


def test_the_closest_policy_of_calls_holds(gateway: Callable[..., Gateway], echo: int) -> None:
    """Each call shows its credentials, which the echo sends back."""
    keys = [entries("Secret", f"{place}/{place}", Authorization=place) for place in ("edge", "shop")]
    auth = {name: {"auth": {"secretRef": {"name": name}}} for name in ("edge", "shop")}
    rules = [
        {"name": "plain", "backendRefs": [to("other")]},
        {"name": "service", "matches": [{"path": {"value": "/service"}}], "backendRefs": [to()]},
        {"name": "closed", "matches": [{"path": {"value": "/closed"}}], "backendRefs": [to()]},
    ]
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/cart", *rules),
        service(), endpoints("shop/cart-1", "cart", ["127.0.0.1"], echo),
        service("shop/other"), endpoints("shop/other-1", "other", ["127.0.0.1"], echo), *keys,
        policy("edge/all", {"group": API, "kind": "Gateway", "name": "main"}, backend=auth["edge"]),
        policy("shop/cart", {"group": "", "kind": "Service", "name": "cart"}, backend=auth["shop"]),
        # It cannot be read, so nothing is sent.
        policy("shop/broken", {"group": API, "kind": "HTTPRoute", "name": "cart", "sectionName": "closed"}, backend=auth["edge"]),
    ]  # fmt: skip
    running = gateway(configuration(cluster))

    def ask(path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{running.port}{path}")

    def shown(path: str) -> list[str]:
        return [value for name, value in ask(path).json()["headers"] if name == "authorization"]

    assert shown("/") == ["Bearer edge"]
    assert shown("/service") == ["Bearer shop"]
    assert ask("/closed").status_code == 403


def test_keys_of_tokens_come_from_a_service(gateway: Callable[..., Gateway], stand_in: Callable[..., StandIn], echo: int) -> None:
    """One endpoint of the service has no keys. The route for MCP serves its metadata as well."""
    good, bad = stand_in(whole(JWKS.encode())), stand_in(whole({}, 500))
    known = "/.well-known/oauth-protected-resource/mcp"
    away = {"name": "away", "matches": [{"path": {"value": path}} for path in ("/mcp", known)], "backendRefs": [to()]}
    jwks = {"remote": {"backendRef": to("idp"), "jwksPath": "/keys", "cacheDuration": "10m"}}
    tokens = {"providers": [{"issuer": ISSUER, "audiences": ["api"], "jwks": jwks}]}
    ends = endpoints("shop/idp-1", "idp", ["127.0.0.1"], good.port)
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT)), http_route("shop/cart", {"name": "rest", "backendRefs": [to()]}, away),
        service(), endpoints("shop/cart-1", "cart", ["127.0.0.1"], echo), service("shop/idp"), ends,
        endpoints("shop/idp-2", "idp", ["127.0.0.2"], bad.port),
        policy("shop/in", {"group": API, "kind": "HTTPRoute", "name": "cart", "sectionName": "rest"}, traffic={"jwtAuthentication": tokens}),
        policy("shop/mcp", {"group": API, "kind": "HTTPRoute", "name": "cart", "sectionName": "away"},
               traffic={"jwtAuthentication": tokens | {"mcp": {"resourceMetadata": {"scopes_supported": ["all"]}}}}),
    ]  # fmt: skip
    running = gateway(configuration(cluster))

    def ask(path: str, **headers: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{running.port}{path}", headers=headers)

    wait_for(lambda: ask("/", authorization=f"Bearer {token()}").status_code == 200)
    assert (good.last.path, ask("/").status_code) == ("/keys", 401)
    told = ask("/mcp")
    assert (told.status_code, "resource_metadata=" in told.headers["www-authenticate"]) == (401, True)
    assert ask(known).json()["scopes_supported"] == ["all"]
    assert ask("/mcp", authorization=f"Bearer {token()}").status_code == 200


def test_a_port_has_rules_about_connections_of_its_own(gateway: Callable[..., Gateway], echo: int) -> None:
    more = free_port()
    target = {"group": API, "kind": "Gateway", "name": "main", "port": more}
    rules = {"action": "Deny", "policy": {"matchExpressions": ["true"]}}
    cluster = [
        gateway_class(), gateway_manifest(listener(port=PORT), listener("more", more)), http_route("shop/cart", {"backendRefs": [to()]}),
        service(), endpoints("shop/cart-1", "cart", ["127.0.0.1"], echo), policy("edge/front", target, frontend={"networkAuthorization": rules}),
    ]  # fmt: skip
    running = gateway(configuration(cluster))
    assert httpx.get(f"http://127.0.0.1:{running.port}/").status_code == 200
    with pytest.raises(httpx.TransportError):
        httpx.get(f"http://127.0.0.1:{more}/")
