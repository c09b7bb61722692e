"""Manifests of a small cluster, as an API server would give them."""

from __future__ import annotations

import base64
from typing import Any

Json = dict[str, Any]
GATEWAY_API = "gateway.networking.k8s.io/v1"


def made(kind: str, name: str, spec: Json, version: str = GATEWAY_API, **metadata: Any) -> Json:
    """Return an object; `name` is `namespace/name`, or a name without a namespace."""
    namespace, slash, own = name.rpartition("/")
    where = {"namespace": namespace} if slash else {}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": own, **where, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", **metadata},
        "spec": spec,
    }


def gateway_class(name: str = "headgate", controller: str = "headgate.dev/headgate") -> Json:
    return made("GatewayClass", name, {"controllerName": controller})


def listener(name: str = "web", port: int = 80, protocol: str = "HTTP", **more: Any) -> Json:
    return {"name": name, "port": port, "protocol": protocol, "allowedRoutes": {"namespaces": {"from": "All"}}, **more}


def gateway(*listeners: Json, name: str = "edge/main", sets: str | None = None, **metadata: Any) -> Json:
    """Return a Gateway; `sets`: from which namespaces it takes ListenerSets."""
    allowed = {} if sets is None else {"allowedListeners": {"namespaces": {"from": sets}}}
    spec = {"gatewayClassName": "headgate", "listeners": list(listeners or (listener(),)), **allowed}
    return made("Gateway", name, spec, **metadata)


def to(service: str = "cart", port: int | None = 8080, **more: Any) -> Json:
    return {"name": service, **({} if port is None else {"port": port}), **more}


def http_route(name: str = "shop/cart", *rules: Json, parent: Json | None = None, hostnames: tuple[str, ...] = (), **metadata: Any) -> Json:
    spec: Json = {"parentRefs": [parent or {"name": "main", "namespace": "edge"}], "rules": list(rules or ({"backendRefs": [to()]},))}
    if hostnames:
        spec["hostnames"] = list(hostnames)
    return made("HTTPRoute", name, spec, **metadata)


def grpc_route(name: str = "shop/calls", *rules: Json, **more: Any) -> Json:
    return http_route(name, *rules, **more) | {"kind": "GRPCRoute"}


def tls_route(name: str = "shop/bytes", *rules: Json, **more: Any) -> Json:
    return http_route(name, *rules, **more) | {"kind": "TLSRoute"}


def tcp_route(name: str = "shop/bytes", *rules: Json, **more: Any) -> Json:
    return http_route(name, *rules, **more) | {"kind": "TCPRoute", "apiVersion": "gateway.networking.k8s.io/v1alpha2"}


def passthrough(name: str = "tls", port: int = 443, **more: Any) -> Json:
    return listener(name, port, "TLS", tls={"mode": "Passthrough"}, **more)


def listener_set(name: str = "shop/more", *listeners: Json, **metadata: Any) -> Json:
    spec = {"parentRef": {"name": "main", "namespace": "edge"}, "listeners": list(listeners or (listener("more", 8080),))}
    return made("ListenerSet", name, spec, **metadata)


def of_set(name: str = "more", **more: Any) -> Json:
    """Return a parentRef that names a ListenerSet."""
    return {"kind": "ListenerSet", "name": name, **more}


def service(name: str = "shop/cart", *ports: Json, **more: Any) -> Json:
    return made("Service", name, {"ports": list(ports or ({"port": 8080},)), **more}, "v1")


def gateway_backend(name: str = "shop/away", **spec: Any) -> Json:
    return made("GatewayBackend", name, spec or {"static": {"host": "away.test", "port": 80}}, "headgate.dev/v1alpha1")


def entries(kind: str, name: str, **data: str) -> Json:
    """Return a Secret or ConfigMap with these entries."""
    found = made(kind, name, {}, "v1")
    del found["spec"]
    return found | {"data": {key: base64.b64encode(one.encode()).decode() if kind == "Secret" else one for key, one in data.items()}}


def own(name: str, kind: str = "GatewayBackend", **more: Any) -> Json:
    """Return a reference to one of our kinds."""
    return {"group": "headgate.dev", "kind": kind, "name": name, **more}


def endpoints(name: str, owner: str, addresses: list[str], port: int = 80, **more: Any) -> Json:
    found = made("EndpointSlice", name, {}, "discovery.k8s.io/v1", labels={"kubernetes.io/service-name": owner})
    del found["spec"]
    ends = [{"addresses": [one], "conditions": {"ready": True}} for one in addresses]
    return {**found, "addressType": "IPv4", "ports": [{"port": port}], "endpoints": ends, **more}


def grant(name: str, origin: Json, target: Json) -> Json:
    return made("ReferenceGrant", name, {"from": [origin], "to": [target]}, "gateway.networking.k8s.io/v1beta1")


FROM_SHOP = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "shop"}


def model(name: str = "shop/gpt", *parents: Json, **spec: Any) -> Json:
    """Return a GatewayModel, of OpenAI unless it says another provider or is virtual."""
    provider = {} if {"provider", "virtualModel"} & spec.keys() else {"provider": "OpenAI"}
    references = list(parents or ({"name": "main", "namespace": "edge"},))
    return made("GatewayModel", name, {"parentRefs": references, **provider, **spec}, "headgate.dev/v1alpha1")


def of_models(*kinds: str, **more: Any) -> Json:
    """Return `allowedRoutes` of a listener that takes models, and routes of the kinds given."""
    listed = [{"group": "headgate.dev", "kind": "GatewayModel"}, *({"kind": one} for one in kinds)]
    return {"allowedRoutes": {"namespaces": {"from": "All"}, "kinds": listed, **more}}
