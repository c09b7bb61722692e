"""Filters of one backendRef."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, gateway_backend, http_route, listener, own, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.http_routes import http_route as translated
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import RouteResult

SNAPSHOT = Snapshot.of([
    service(), service("shop/pay"), gateway_backend(), gateway_backend("shop/cloud", ai={"provider": {"openai": {}}}),
    gateway_backend("shop/edited", static={"host": "a.test", "port": 80}, policies={"transformation": {"request": {"body": "'x'"}}}),
])  # fmt: skip
PAY = {"service": {"name": "shop/pay.shop.svc.cluster.local", "port": 8080}}


def rewrite(**fields: Any) -> Json:
    return {"type": "URLRewrite", "urlRewrite": fields}


def prefix(value: str) -> Json:
    return rewrite(path={"type": "ReplacePrefixMatch", "replacePrefixMatch": value})


MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": to("pay")}}


def result(*references: Json, path: str = "/a", filters: tuple[Json, ...] = ()) -> RouteResult:
    rule = {"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": list(references), "filters": list(filters)}
    return translated(SNAPSHOT, http_route("shop/cart", rule), [Attachment(ListenerState(listener()), ())], {"web": "listener/edge/main.web"})


@pytest.mark.parametrize(
    ("path", "filter_", "edits"),
    [
        ("/a", rewrite(hostname="x.test"), {":authority": '"x.test"'}),
        ("/a", rewrite(path={"type": "ReplaceFullPath", "replaceFullPath": "/x"}), {":path": '"/x" + request.pathAndQuery.stripPrefix(request.path)'}),
        ("/a/", prefix("/b/"), {":path": '(request.path == "/a" ? "/b" : "/b") + request.pathAndQuery.stripPrefix("/a")'}),
        ("/a", prefix(""), {":path": '(request.path == "/a" ? "/" : "") + request.pathAndQuery.stripPrefix("/a")'}),
        ("/", prefix("/b"), {":path": '(request.path == "" ? "/b" : "/b") + request.pathAndQuery.stripPrefix("")'}),
    ],
)
def test_a_rewrite_of_one_backend_is_a_transformation(path: str, filter_: Json, edits: Json) -> None:
    found = result(to(filters=[filter_]), to("pay"), path=path)
    assert found.invalid == {}
    first, second = found.fragments[0].value["backends"]
    assert first["policies"] == {"transformations": {"request": {"set": edits}}}
    assert "policies" not in second


def test_a_rewrite_of_a_backend_at_an_address() -> None:
    found = result(own("away", filters=[rewrite(hostname="x.test")]))
    assert found.fragments[0].value["backends"][0]["policies"] == {"transformations": {"request": {"set": {":authority": '"x.test"'}}}}


def test_a_mirror_of_the_only_backend_is_one_of_the_rule() -> None:
    (fragment,) = result(to(filters=[MIRROR])).fragments
    assert fragment.value["policies"] == {"requestMirror": {"backend": PAY, "percentage": 1.0}}
    assert "policies" not in fragment.value["backends"][0]


def test_mirrors_of_a_rule_and_of_its_only_backend() -> None:
    other = {"type": "RequestMirror", "requestMirror": {"backendRef": to("pay"), "percent": 5}}
    (fragment,) = result(to(filters=[MIRROR]), filters=(other,)).fragments
    assert fragment.value["policies"]["requestMirror"] == [{"backend": PAY, "percentage": 0.05}, {"backend": PAY, "percentage": 1.0}]


def test_a_mirror_of_one_backend_of_several_stands_in_a_group() -> None:
    found = result(to(weight=3, filters=[MIRROR, rewrite(hostname="x.test")]), to("pay"))
    assert found.invalid == {}
    group, inside, fragment = found.fragments
    name = "mirrored/shop/cart.00.00"
    assert fragment.value["backends"] == [{"weight": 3, "routeGroup": name}, {"weight": 1, **PAY}]
    assert "policies" not in fragment.value
    assert (group.place, group.value, inside.parent) == ("routeGroups", {"name": name}, group.key)
    edits = {"transformations": {"request": {"set": {":authority": '"x.test"'}}}}
    cart = {"service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}
    assert inside.value["backends"] == [cart | {"policies": edits}]
    assert inside.value["policies"] == {"requestMirror": {"backend": PAY, "percentage": 1.0}}
    # Policies that target the route hold once.
    assert (inside.value["name"], inside.value["namespace"]) == ("cart/mirrored", "shop")
    assert found.used == [ObjectKey("shop", "cart"), ObjectKey("shop", "pay"), ObjectKey("shop", "pay")]


def test_a_mirror_stands_in_a_group_of_a_rule_that_replaces_a_prefix() -> None:
    found = result(to(filters=[MIRROR]), to("pay"), filters=(prefix("/b"),))
    assert found.invalid == {}
    _, inside, fragment = found.fragments
    # What the rule replaces is what the rule has matched.
    assert fragment.value["policies"] == {"urlRewrite": {"path": {"prefix": "/b"}}}
    assert inside.value["matches"] == [{"path": {"pathPrefix": "/"}}]


@pytest.mark.parametrize("name", ["edited", "cloud"])
def test_a_rewrite_of_what_is_no_place_is_one_of_the_route(name: str) -> None:
    (fragment,) = result(own(name, filters=[prefix("/b")])).fragments
    assert fragment.value["policies"] == {"urlRewrite": {"path": {"prefix": "/b"}}}
    assert fragment.value["backends"] == [{"weight": 1, "backend": f"shop/{name}"}]
    found = result(own(name, filters=[prefix("/b")]), to("pay"), path="/a")
    assert found.invalid == {}
    _, inside, fragment = found.fragments
    assert fragment.value["backends"] == [{"weight": 1, "routeGroup": "mirrored/shop/cart.00.00"}, {"weight": 1, **PAY}]
    assert inside.value["policies"] == {"urlRewrite": {"path": {"prefix": "/b"}}}
    assert inside.value["matches"] == [{"path": {"pathPrefix": "/a"}}]
    whole = result(own(name, filters=[rewrite(hostname="x.test")]), to("pay"), path="/a")
    assert whole.fragments[1].value["matches"] == [{"path": {"pathPrefix": "/"}}]


def test_a_backend_with_a_filter_that_there_is_not_gets_nothing() -> None:
    extension = {"type": "ExtensionRef", "extensionRef": {"group": "other.test", "kind": "Filter", "name": "a"}}
    found = result(to(filters=[extension]), to("pay"))
    assert [one.reason for one in found.unresolved] == ["InvalidKind"]
    assert found.fragments[0].value["backends"] == [{"weight": 1, "backend": "unresolved/shop/cart"}, {"weight": 1, **PAY}]


@pytest.mark.parametrize(
    ("references", "filters", "reason"),
    [
        ((to(filters=[MIRROR, rewrite(path={"type": "ReplaceFullPath", "replaceFullPath": "/x?y"})]), to("pay")), (), "UnsupportedValue"),
        ((to(filters=[rewrite(hostname="x.test")]),), (rewrite(hostname="y.test"),), "IncompatibleFilters"),
        ((to(filters=[rewrite(path={"type": "ReplaceFullPath", "replaceFullPath": "/x?y"})]),), (), "UnsupportedValue"),
    ],
)
def test_what_cannot_be_had_is_told(references: tuple[Json, ...], filters: tuple[Json, ...], reason: str) -> None:
    found = result(*references, filters=filters)
    assert [one.reason for one in found.invalid[0]] == [reason]
    assert found.fragments == []
