"""The translator between a real API server's objects and its checks of statuses."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from certificates_rig import secret
from cluster_lab import RunningCluster, kubernetes
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
    passthrough,
    service,
    tcp_route,
    tls_route,
    to,
)

from headgate.cluster.resources import kinds
from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway import Acknowledged

__all__ = ["kubernetes"]

GATEWAY_API = "/apis/gateway.networking.k8s.io"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "GatewayClass": f"{GATEWAY_API}/v1/gatewayclasses",
    "Gateway": f"{GATEWAY_API}/v1/namespaces/{{}}/gateways",
    "HTTPRoute": f"{GATEWAY_API}/v1/namespaces/{{}}/httproutes",
    "GRPCRoute": f"{GATEWAY_API}/v1/namespaces/{{}}/grpcroutes",
    "TLSRoute": f"{GATEWAY_API}/v1/namespaces/{{}}/tlsroutes",
    "TCPRoute": f"{GATEWAY_API}/v1alpha2/namespaces/{{}}/tcproutes",
    "ListenerSet": f"{GATEWAY_API}/v1/namespaces/{{}}/listenersets",
    "ReferenceGrant": f"{GATEWAY_API}/v1beta1/namespaces/{{}}/referencegrants",
    "GatewayBackend": "/apis/headgate.dev/v1alpha1/namespaces/{}/gatewaybackends",
    "GatewayModel": "/apis/headgate.dev/v1alpha1/namespaces/{}/gatewaymodels",
    "GatewayPolicy": "/apis/headgate.dev/v1alpha1/namespaces/{}/gatewaypolicies",
    "BackendTLSPolicy": f"{GATEWAY_API}/v1/namespaces/{{}}/backendtlspolicies",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "EndpointSlice": "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices",
}
TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}
TLS = {"tls": {"certificateRefs": [{"name": "tls"}]}}
CA = {"group": "", "kind": "ConfigMap", "name": "gone"}
# An invalid protocol, a conflict, a certificate that is missing: each with a status of its own.
DOCUMENTS = [
    *(made("Namespace", name, {}, "v1") for name in ("edge", "shop", "store")),
    gateway_class(), secret(),
    gateway(
        listener("web"), listener("again", 80, "HTTPS", **TLS), listener("tls", 443, "HTTPS", **TLS), listener("bare", 8443, "HTTPS", tls={"certificateRefs": [{"name": "gone"}]}),
        listener("own", 81, allowedRoutes={"kinds": [{"kind": "TCPRoute"}]}), listener("udp", 82, "UDP"), listener("raw", 83, "TCP"), passthrough("pass", 8444, hostname="*.pass.test"),
        listener("ai", 8090, **of_models()), sets="All",
    ),
    model(), model("shop/lone", {"name": "main", "namespace": "edge", "sectionName": "web"}),
    listener_set("shop/more", listener("new", 8080), listener("web", 80)), listener_set("shop/lost", listener("web", 80)),
    http_route("shop/set", {"backendRefs": [to()]}, parent=of_set()),
    tls_route("shop/passed", {"backendRefs": [to()]}, hostnames=("a.pass.test",)), tls_route("shop/other", {"backendRefs": [to()]}, hostnames=("a.test",)),
    made("BackendTLSPolicy", "shop/tls", {"targetRefs": [{"group": "", "kind": "Service", "name": "cart"}], "validation": {"caCertificateRefs": [CA], "hostname": "a.test"}}),
    made("BackendTLSPolicy", "shop/tls-late", {"targetRefs": [{"group": "", "kind": "Service", "name": "cart"}], "validation": {"wellKnownCACertificates": "System", "hostname": "a.test"}}),
    tcp_route("shop/bytes", {"backendRefs": [to()]}),
    http_route("shop/cart", {"backendRefs": [to()], "timeouts": {"request": "3s"}}, hostnames=("cart.test",)),
    http_route("shop/far", {"backendRefs": [to("far", namespace="store")]}, hostnames=("far.test",)),
    http_route("shop/gone", {"backendRefs": [to("gone")]}, parent={"name": "main", "namespace": "edge", "sectionName": "other"}),
    grpc_route("shop/calls", {"matches": [{"method": {"service": "shop.Cart", "method": "Add"}}], "backendRefs": [to()]}, hostnames=("calls.test",)),
    grpc_route("shop/late", hostnames=("cart.test",)),
    gateway_backend("shop/model", ai={"provider": {"openai": {}}}, policies={"auth": {"secretRef": {"name": "key"}}}),
    gateway_backend("shop/lost", static={"host": "a.test", "port": 80}, policies={"auth": {"secretRef": {"name": "gone"}}}),
    entries("Secret", "shop/key", Authorization="k"),
    made("GatewayPolicy", "shop/login", {"targetRefs": [TARGET], "traffic": {"apiKeyAuthentication": {"secretRef": {"name": "key"}}, "timeouts": {"request": "3s"}}},
         "headgate.dev/v1alpha1"),
    service("shop/cart", {"name": "web", "port": 8080}), service("store/far", {"name": "web", "port": 8080}),
    endpoints("shop/cart-1", "cart", ["10.0.0.1"], ports=[{"name": "web", "port": 80}]),
]  # fmt: skip


def stored(document: Json) -> Json:
    """Return what a user writes: without what the server adds."""
    kept = copy.deepcopy(document)
    for name in ("generation", "creationTimestamp"):
        kept["metadata"].pop(name)
    return {key: value for key, value in kept.items() if value != {}}


def path_of(kind: str, namespace: str) -> str:
    return PATHS[kind].format(namespace)


def read(server: RunningCluster) -> Snapshot:
    documents: list[Json] = []
    for kind in PATHS:
        documents += server.listed(PATHS[kind].replace("/namespaces/{}", ""))
    return Snapshot.of(documents)


@pytest.fixture(scope="module")
def server(kubernetes: RunningCluster) -> RunningCluster:
    kubernetes.define([kinds.definition(kind) for kind in kinds.KINDS])
    for one in DOCUMENTS:
        kubernetes.apply(stored(one), path_of(one["kind"], one["metadata"].get("namespace", "")))
    return kubernetes


def written(server: RunningCluster, world: World) -> dict[str, dict[str, Any]]:
    """Write all statuses as a controller would, and return what is stored."""
    found = {}
    for one in world.statuses:
        content = copy.deepcopy(one.content)
        for holder in (content, *content.get("listeners", ()), *content.get("parents", ()), *content.get("ancestors", ())):
            for condition in holder.get("conditions", ()):
                condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        about = server.send("GET", f"{path_of(one.kind.kind, one.key.namespace)}/{one.key.name}")[1]
        document = {key: about[key] for key in ("apiVersion", "kind")} | {"metadata": {"name": one.key.name}, "status": content}
        path = f"{path_of(one.kind.kind, one.key.namespace)}/{one.key.name}/status"
        status, answer = server.send("PATCH", path, document, fieldManager="headgate.dev/headgate", force="true")
        assert status == 200, answer
        found[f"{one.kind.kind} {one.key}"] = answer["status"]
    return found


def said(holder: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in holder["conditions"]}


def test_statuses_are_what_the_api_takes(server: RunningCluster) -> None:
    key = ObjectKey("edge", "main")
    found = written(server, everything(read(server), {key: Acknowledged(1)}))
    assert set(found) == {"GatewayBackend shop/model", "GatewayBackend shop/lost", "GatewayModel shop/gpt", "GatewayModel shop/lone", "GatewayPolicy shop/login", "GatewayClass headgate", "Gateway edge/main", "GRPCRoute shop/calls", "GRPCRoute shop/late", "HTTPRoute shop/cart", "HTTPRoute shop/far", "HTTPRoute shop/gone", "HTTPRoute shop/set", "TLSRoute shop/passed", "TLSRoute shop/other", "TCPRoute shop/bytes", "ListenerSet shop/more", "ListenerSet shop/lost", "BackendTLSPolicy shop/tls", "BackendTLSPolicy shop/tls-late"}
    assert said(found["Gateway edge/main"]) == {"Accepted": ("True", "ListenersNotValid"), "Programmed": ("True", "Programmed")}
    listeners = {one["name"]: one for one in found["Gateway edge/main"]["listeners"]}
    assert {name: one["attachedRoutes"] for name, one in listeners.items()} == {
        "web": 3, "again": 0, "tls": 3, "bare": 3, "own": 0, "udp": 0, "raw": 1, "pass": 1, "ai": 1,
    }  # fmt: skip
    assert said(listeners["again"])["Conflicted"] == ("True", "ProtocolConflict")
    assert said(listeners["bare"])["ResolvedRefs"] == ("False", "InvalidCertificateRef")
    assert said(listeners["own"])["ResolvedRefs"] == ("False", "InvalidRouteKinds")
    assert said(listeners["udp"])["Accepted"] == ("False", "UnsupportedProtocol")
    assert found["Gateway edge/main"]["attachedListenerSets"] == 1
    assert said(found["ListenerSet shop/more"]) == {"Accepted": ("True", "ListenersNotValid"), "Programmed": ("True", "Programmed")}
    assert {one["name"]: one["attachedRoutes"] for one in found["ListenerSet shop/more"]["listeners"]} == {"new": 1, "web": 0}
    assert said(found["ListenerSet shop/lost"]["listeners"][0])["Conflicted"] == ("True", "HostnameConflict")
    assert said(found["HTTPRoute shop/set"]["parents"][0])["Accepted"] == ("True", "Accepted")
    assert said(found["TLSRoute shop/passed"]["parents"][0])["Accepted"] == ("True", "Accepted")
    assert said(found["TLSRoute shop/other"]["parents"][0])["Accepted"] == ("False", "NoMatchingListenerHostname")
    assert said(found["BackendTLSPolicy shop/tls"]["ancestors"][0]) == {"Accepted": ("False", "NoValidCACertificate"), "ResolvedRefs": ("False", "InvalidCACertificateRef")}
    assert said(found["BackendTLSPolicy shop/tls-late"]["ancestors"][0])["Accepted"] == ("False", "Conflicted")
    assert said(found["TCPRoute shop/bytes"]["parents"][0])["ResolvedRefs"] == ("True", "ResolvedRefs")
    assert said(found["GRPCRoute shop/calls"]["parents"][0])["Accepted"] == ("True", "Accepted")
    assert said(found["GRPCRoute shop/late"]["parents"][0])["Accepted"] == ("False", "HostnameConflict")
    assert [one["kind"] for one in listeners["web"]["supportedKinds"]] == ["HTTPRoute", "GRPCRoute"]
    parents = {name: found[f"GatewayModel shop/{name}"]["parents"][0] for name in ("gpt", "lone")}
    assert [said(one)["Accepted"] for one in parents.values()] == [("True", "Accepted"), ("False", "NotAllowedByListeners")]
    assert said(found["GatewayBackend shop/model"]) == {"Accepted": ("True", "Accepted")}
    assert said(found["GatewayBackend shop/lost"]) == {"Accepted": ("False", "TranslationError")}
    assert said(found["GatewayPolicy shop/login"]["ancestors"][0]) == {"Accepted": ("True", "Valid"), "Attached": ("True", "Attached")}
    assert said(found["HTTPRoute shop/gone"]["parents"][0])["Accepted"] == ("False", "NoMatchingParent")


def test_a_grant_comes_and_goes(server: RunningCluster) -> None:
    key, route = ObjectKey("edge", "main"), "HTTPRoute shop/far"
    allowed = stored(grant("store/g", FROM_SHOP, {"group": "", "kind": "Service"}))

    def resolved() -> tuple[tuple[str, str], bool]:
        """Return the condition, and whether the file knows the service."""
        world = everything(read(server), {})
        file = assembled(world.gateways[key])
        return said(written(server, world)[route]["parents"][0])["ResolvedRefs"], any(one["name"] == "far" for one in file["services"])

    assert resolved() == (("False", "RefNotPermitted"), False)
    server.apply(allowed, path_of("ReferenceGrant", "store"))
    assert resolved() == (("True", "ResolvedRefs"), True)
    server.send("DELETE", f"{path_of('ReferenceGrant', 'store')}/g")
    assert resolved() == (("False", "RefNotPermitted"), False)
