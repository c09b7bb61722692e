"""All Gateways of this controller, and what the loader of the file makes of them."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
import yaml
from certificates_rig import secret
from manifests import (
    FROM_SHOP,
    Json,
    endpoints,
    gateway,
    gateway_backend,
    gateway_class,
    grant,
    grpc_route,
    http_route,
    listener,
    listener_set,
    made,
    of_set,
    own,
    passthrough,
    service,
    tcp_route,
    tls_route,
    to,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot, key_of
from headgate.cluster.translate.everything import World, everything, main
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load

TLS = {"tls": {"certificateRefs": [{"name": "tls"}]}}
FILTERS = [
    {"type": "RequestHeaderModifier", "requestHeaderModifier": {"add": [{"name": "a", "value": "b"}]}},
    {"type": "URLRewrite", "urlRewrite": {"hostname": "x.test", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/v2"}}},
    {"type": "RequestMirror", "requestMirror": {"backendRef": to("pay"), "percent": 10}},
    {"type": "CORS", "cors": {"allowOrigins": ["*"]}},
]
CLUSTER = [
    gateway_class(), gateway_class("theirs", "other.test/x"), secret(),
    gateway(
        listener(), listener("tls", 443, "HTTPS", hostname="*.shop.test", **TLS),
        listener("rpc", 9090, allowedRoutes={"namespaces": {"from": "All"}, "kinds": [{"kind": "GRPCRoute"}]}),
    ),
    gateway(listener("in", 8080), name="edge/inner"),
    made("Gateway", "edge/theirs", {"gatewayClassName": "theirs", "listeners": [listener()]}),
    http_route("shop/cart", {"matches": [{"path": {"value": "/cart"}}], "filters": FILTERS, "backendRefs": [to(), to("pay", weight=2)],
                             "timeouts": {"request": "3s"}, "retry": {"attempts": 1, "codes": [503]}}, hostnames=("cart.shop.test",)),
    http_route("shop/broken", {"backendRefs": [to("gone")]}, {"backendRefs": [to("far", namespace="store")]}, {}),
    http_route("shop/both", parent={"name": "inner", "namespace": "edge"}),
    http_route("shop/theirs", parent={"name": "theirs", "namespace": "edge"}),
    http_route("shop/moved", {"filters": [{"type": "RequestRedirect", "requestRedirect": {"scheme": "https", "path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}}]}),
    grpc_route("shop/calls", {"matches": [{"method": {"service": "shop.Cart"}}], "backendRefs": [to(), to("gone")]}, {}, hostnames=("calls.shop.test",)),
    gateway_backend("shop/model", ai={"provider": {"openai": {}}}), gateway_backend("shop/unused"),
    http_route("shop/own", {"matches": [{"path": {"value": "/own"}}], "backendRefs": [own("model"), own("any")]}),
    gateway_backend("shop/any", dynamicForwardProxy={"allowedPorts": [80]}, policies={"http": {"version": "HTTP1"}}),
    service(), service("shop/pay"), service("store/far"),
    grant("store/g", FROM_SHOP, {"group": "", "kind": "Service"}),
    endpoints("shop/cart-1", "cart", ["10.0.0.1", "10.0.0.2"]), endpoints("shop/pay-1", "pay", ["10.0.0.3"]),
]  # fmt: skip
NAMED = {"group": "", "kind": "Service", "name": "cart"}
# Two of each kind of which only one can have something, and of equal age.
MORE = [
    gateway(passthrough(), listener("raw", 9000, "TCP"), listener("web"), name="edge/bytes", sets="All"),
    *(listener_set(f"shop/{name}", listener("new", 8080, hostname="new.test"), listener("tls", 443, "HTTPS", **TLS)) for name in "ab"),
    *(tls_route(f"shop/{name}", hostnames=("a.test",), parent={"name": "bytes", "namespace": "edge"}) for name in "ab"),
    *(tcp_route(f"shop/{name}", parent={"name": "bytes", "namespace": "edge"}) for name in "ab"),
    *(made("BackendTLSPolicy", f"shop/{name}", {"targetRefs": [NAMED], "validation": {"wellKnownCACertificates": "System", "hostname": "a.test"}}) for name in "ab"),
    http_route("shop/set", parent=of_set("a")), http_route("shop/top", {"backendRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "*"}]}),
    http_route("shop/below", parent={"kind": "HTTPRoute", "name": "top"}),
]  # fmt: skip
for one in MORE[1:3]:
    one["spec"]["parentRef"]["name"] = "bytes"


def world(documents: list[Json]) -> World:
    return everything(Snapshot.of(documents), {})


def test_the_order_of_events_does_not_matter() -> None:
    first = world([*CLUSTER, *MORE])
    for seed in range(20):
        documents = [*CLUSTER, *MORE]
        random.Random(seed).shuffle(documents)
        other = world(documents)
        assert other.statuses == first.statuses
        assert {key: assembled(one) for key, one in other.gateways.items()} == {key: assembled(one) for key, one in first.gateways.items()}


def test_each_condition_is_about_the_generation_that_was_read() -> None:
    documents = copy.deepcopy([*CLUSTER, *MORE])
    for index, one in enumerate(documents):
        one["metadata"]["generation"] = 100 + index
    generations = {(one["kind"], key_of(one)): one["metadata"]["generation"] for one in documents}
    kinds = set()
    for one in world(documents).statuses:
        holders = [one.content, *(each for name in ("listeners", "parents", "ancestors") for each in one.content.get(name, ()))]
        found = [holder["conditions"] for holder in holders if "conditions" in holder]
        kinds.add(one.kind.kind)
        assert {each["observedGeneration"] for conditions in found for each in conditions} <= {generations[one.kind.kind, one.key]}
        for conditions in found:
            names = [each["type"] for each in conditions]
            assert len(set(names)) == len(names) <= 8
    assert kinds == {"GatewayClass", "Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "BackendTLSPolicy", "GatewayBackend"}


def test_the_oldest_and_then_the_first_by_name_wins() -> None:
    found = world([*CLUSTER, *MORE])
    file = assembled(found.gateways[ObjectKey("edge", "bytes")])
    listeners = {one["name"]: [route["name"] for route in one.get("tcpRoutes", ())] for bind in file["binds"] for one in bind["listeners"]}
    assert listeners == {"tls": ["tls/a"], "raw": ["tcp/a"], "web": [], "shop/a/new": []}
    assert [one["name"]["name"] for one in file["policies"]] == ["a:backend-tls:shop/cart"]


def test_only_own_gateways_and_what_they_reach() -> None:
    found = world(CLUSTER)
    assert set(found.gateways) == {ObjectKey("edge", "main"), ObjectKey("edge", "inner")}
    inner = assembled(found.gateways[ObjectKey("edge", "inner")])
    assert [one["name"] for one in inner["services"]] == ["cart"]
    assert "10.0.0.3" not in json.dumps(inner)
    assert "PRIVATE KEY" not in json.dumps(inner)
    assert "backends" not in inner
    assert [one["name"] for one in assembled(found.gateways[ObjectKey("edge", "main")])["backends"]] == ["shop/any", "shop/model"]


def test_statuses_are_of_all_that_this_controller_decides_about() -> None:
    assert sorted(f"{one.kind.kind} {one.key}" for one in world(CLUSTER).statuses) == [
        "GRPCRoute shop/calls", "Gateway edge/inner", "Gateway edge/main", "GatewayBackend shop/any", "GatewayBackend shop/model",
        "GatewayBackend shop/unused", "GatewayClass headgate", "HTTPRoute shop/both", "HTTPRoute shop/broken", "HTTPRoute shop/cart",
        "HTTPRoute shop/moved", "HTTPRoute shop/own",
    ]  # fmt: skip


def test_parents_of_a_status_are_sorted() -> None:
    route = http_route("shop/x")
    names = ["main", "inner", "theirs", "main"]
    route["spec"]["parentRefs"] = [{"name": name, "namespace": "edge", "port": 80 + index} for index, name in enumerate(names)]
    found = next(one for one in world([*CLUSTER, route]).statuses if one.key.name == "x")
    assert [(one["parentRef"]["name"], one["parentRef"]["port"]) for one in found.content["parents"]] == [("inner", 81), ("main", 80), ("main", 83)]


@pytest.mark.parametrize("name", ["main", "inner"])
def test_the_loader_of_the_file_reads_it(name: str) -> None:
    """What it says of the reference that leads nowhere is a warning: requests to it get 500."""
    text = json.dumps(assembled(world(CLUSTER).gateways[ObjectKey("edge", name)]))
    loaded = load(TextSource(text))
    routes = [route for bind in loaded.gateway.binds for one in bind.listeners for route in one.routes]
    assert {(one.namespace, one.name) for one in routes if one.namespace == "shop"} == ({("shop", "cart"), ("shop", "broken"), ("shop", "moved"), ("shop", "own"), ("shop", "grpc/calls")} if name == "main" else {("shop", "both")})
    assert [one for one in loaded.warnings if "unresolved/" not in one] == []


def test_a_change_of_one_route_moves_its_fragments_alone() -> None:
    key = ObjectKey("edge", "main")
    before = {one.key: one for one in world(CLUSTER).gateways[key]}
    changed = [one for one in CLUSTER if one["metadata"]["name"] != "moved"] + [http_route("shop/moved", {"backendRefs": [to()]}, generation=2)]
    after = {one.key: one for one in world(changed).gateways[key]}
    assert before.keys() == after.keys()
    assert {name for name in before if before[name] != after[name]} == {"route/shop/moved.00.web", "route/shop/moved.00.tls"}


def test_manifests_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all(CLUSTER))
    assert main([str(file)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert set(shown["gateways"]) == {"edge/main", "edge/inner"}
    assert len(shown["statuses"]) == 12
