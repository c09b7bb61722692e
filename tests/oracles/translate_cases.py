"""Objects of a cluster, by what they show: golden files say which IR and which statuses they come to."""

from __future__ import annotations

from typing import Any

from fault_cases import FAULT_CASES
from manifests import (
    FROM_SHOP,
    Json,
    endpoints,
    entries,
    gateway,
    gateway_backend,
    gateway_class,
    grant,
    grpc_route,
    http_route,
    listener,
    listener_set,
    made,
    model,
    of_models,
    of_set,
    own,
    passthrough,
    service,
    tcp_route,
    tls_route,
    to,
)

CART = [gateway_class(), service(), endpoints("shop/cart-1", "cart", ["10.0.0.1", "10.0.0.2"])]
KEY = entries("Secret", "shop/key", Authorization="canary")
ROUTE = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}
OWNER = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "main"}
TOOL = {"name": "tool", "static": {"backendRef": {"name": "tools"}, "port": 8080}}
PICKER = {"name": "picker", "port": {"number": 9002}}


def policy(name: str, target: Json, **spec: Any) -> Json:
    return made("GatewayPolicy", name, {"targetRefs": [target], **spec}, "headgate.dev/v1alpha1")


def prefix(value: str) -> Json:
    return {"matches": [{"path": {"type": "PathPrefix", "value": value}}]}


def pool() -> list[Json]:
    spec = {"selector": {"matchLabels": {"app": "model"}}, "targetPorts": [{"number": 8000}], "endpointPickerRef": PICKER}
    pod = made("Pod", "shop/a", {}, "v1", labels={"app": "model"})
    status = {"podIP": "10.0.0.9", "conditions": [{"type": "Ready", "status": "True"}]}
    group = {"group": "inference.networking.k8s.io", "kind": "InferencePool"}
    return [
        made("InferencePool", "shop/models", spec, "inference.networking.k8s.io/v1"), {**pod, "status": status},
        service("shop/picker", {"name": "grpc", "port": 9002}), http_route("shop/models", {"backendRefs": [{**group, "name": "models"}]}),
    ]  # fmt: skip


CASES: dict[str, list[Json]] = {
    **FAULT_CASES,
    "grpc-routes": [
        *CART, gateway(),
        grpc_route("shop/calls", {
            "name": "get", "matches": [{"method": {"service": "shop.Cart", "method": "Get"}}, {"method": {"type": "RegularExpression", "service": "a.*"}}],
            "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-a", "value": "1"}]}}], "backendRefs": [to(weight=3), to("gone")],
        }, hostnames=("calls.test",)),
    ],
    "tls-and-tcp-routes": [
        *CART, gateway(passthrough(), listener("raw", 9000, "TCP")),
        tls_route("shop/secret", {"backendRefs": [to()]}, parent={"name": "main", "namespace": "edge", "sectionName": "tls"}, hostnames=("secret.test",)),
        tls_route("shop/late", {"backendRefs": [to()]}, parent={"name": "main", "namespace": "edge", "sectionName": "tls"}, hostnames=("secret.test",),
                  creationTimestamp="2026-02-01T00:00:00Z"),
        tcp_route("shop/bytes", {"backendRefs": [to(weight=1), to("gone", weight=2)]}, parent={"name": "main", "namespace": "edge", "sectionName": "raw"}),
    ],
    "listener-sets": [
        *CART, gateway(listener(), sets="Same"), listener_set("edge/more"), listener_set("shop/refused"),
        http_route("edge/cart", {"backendRefs": [to("cart", namespace="shop")]}, parent=of_set()),
        http_route("shop/cart", parent=of_set("refused")),
    ],
    "grants": [
        *CART, gateway(), service("store/stock"), http_route("shop/stock", {"backendRefs": [to("stock", namespace="store")]}, hostnames=("a.test",)),
        service("depot/stock"), http_route("shop/depot", {"backendRefs": [to("stock", namespace="depot")]}, hostnames=("b.test",)),
        grant("depot/cart", FROM_SHOP, {"group": "", "kind": "Service"}),
    ],
    "delegation": [
        *CART, gateway(), http_route("shop/top", {**prefix("/"), "backendRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "*"}]}),
        http_route("shop/below", {**prefix("/a"), "backendRefs": [to()]}, parent={"kind": "HTTPRoute", "name": "top"}),
    ],
    "backends": [
        *CART, KEY, gateway(), service("shop/tools"), endpoints("shop/tools-1", "tools", ["10.0.0.7"], 9000),
        gateway_backend("shop/away", static={"host": "away.test", "port": 443}, policies={"tls": {}, "auth": {"secretRef": {"name": "key"}}}),
        gateway_backend("shop/chat", ai={"groups": [{"providers": [{"name": "a", "openai": {"model": "m"}}]}, {"providers": [{"name": "b", "anthropic": {}}]}]}),
        gateway_backend("shop/servers", mcp={"targets": [TOOL]}),
        gateway_backend("shop/any", dynamicForwardProxy={"allowedHosts": ["*.away.test"], "allowedPorts": [443]}),
        gateway_backend("shop/bad", static={"host": "away.test", "port": 443}, policies={"auth": {"secretRef": {"name": "gone"}}}),
        *(http_route(f"shop/{name}", {**prefix(f"/{name}"), "backendRefs": [own(name)]}) for name in ("away", "chat", "servers", "any", "bad")),
    ],
    "policies-of-requests": [
        *CART, gateway(), http_route(), policy("shop/one", ROUTE, traffic={
            "timeouts": {"request": "3s"}, "retry": {"attempts": 2, "codes": [503]}, "csrf": {"additionalOrigins": ["https://a.test"]},
            "cors": {"allowOrigins": ["https://a.test"], "maxAge": 60}, "authorization": {"policy": {"matchExpressions": ["request.path == '/a'"]}},
            "rateLimit": {"local": [{"requests": 5, "unit": "Seconds"}]}, "transformation": {"request": {"set": [{"name": "x-bad", "value": "request.("}]}},
        }),
        policy("shop/pending", {**ROUTE, "name": "gone"}, traffic={"timeouts": {"request": "1s"}}),
    ],
    "policies-of-calls": [
        *CART, gateway(), http_route(), policy("shop/calls", {"group": "", "kind": "Service", "name": "cart"}, backend={
            "http": {"requestTimeout": "2s"}, "health": {"eviction": {"duration": "5s", "consecutiveFailures": 3}},
            "tcp": {"keepalive": {"retries": 3}},
        }),
    ],
    "policies-of-clients": [
        *CART, gateway(), http_route(), policy("edge/front", OWNER, frontend={
            "http": {"http1MaxHeaders": 50}, "tcp": {"keepalive": {"time": "60s"}}, "accessLog": {"filter": "response.code >= 500"},
        }),
    ],
    "models": [
        *CART, KEY, gateway(listener("ai", **of_models())),
        model("shop/gpt", model="gpt-5", match={"model": "fast"}, policies={"auth": {"secretRef": {"name": "key"}}}),
        model("shop/other", provider="Anthropic", match={"model": "claude-*"}),
        model("shop/both", match={"model": "any"}, virtualModel={"failover": {"targets": [{"modelRef": "gpt", "priority": 0},
                                                                                     {"modelRef": "gone", "priority": 1}]}}),
    ],
    "pools": [*CART, gateway(), *pool()],
    "mirrors": [
        *CART, gateway(), service("shop/copy"), http_route("shop/cart", {"backendRefs": [
            to(weight=9, filters=[{"type": "RequestMirror", "requestMirror": {"backendRef": to("copy"), "percent": 10}}]), to("copy", weight=1),
        ]}),
    ],
}  # fmt: skip
