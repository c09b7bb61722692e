"""GatewayPolicies of calls to backends, served by a gateway."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from manifests import Json, endpoints, entries, gateway_class, http_route, listener, made, service, to
from manifests import gateway as gateway_manifest
from tests.end_to_end.running import Gateway

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import everything
from headgate.cluster.translate.fragments import assembled
from headgate.document.write import write

pytestmark = pytest.mark.warm

# Stands for the port that a gateway is given.
PORT = 64_999
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
    world = everything(Snapshot.of(cluster), {})
    text = write(assembled(world.gateways[ObjectKey("edge", "main")])).replace(f"port: {PORT}", "port: {port}")
    running = gateway(text)

    def ask(path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{running.port}{path}")

    def shown(path: str) -> list[str]:
        return [value for name, value in ask(path).json()["headers"] if name == "authorization"]

    assert shown("/") == ["Bearer edge"]
    assert shown("/service") == ["Bearer shop"]
    assert ask("/closed").status_code == 403
