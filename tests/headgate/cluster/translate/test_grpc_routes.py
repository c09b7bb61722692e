"""GRPCRoutes as routes of the file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manifests import Json, grpc_route, listener, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.grpc_routes import file_name
from headgate.cluster.translate.grpc_routes import grpc_route as translated
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import RouteResult
from headgate.config.load import TextSource, load

CART = {"service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}
HTTP2 = {"policies": {"http": {"version": "HTTP/2"}}}
SNAPSHOT = Snapshot.of([service(), service("shop/old", {"port": 8080, "appProtocol": "http"})])


def result(*rules: Json, **metadata: Any) -> RouteResult:
    attachments = [Attachment(ListenerState(listener()), ("calls.test",))]
    return translated(SNAPSHOT, grpc_route("shop/calls", *rules, **metadata), attachments, {"web": "listener/edge/main.web"})


def rule(**fields: Any) -> Json:
    """Return the one route of a rule with these fields, which the loader of the file takes."""
    found = result({"backendRefs": [to()], **fields})
    assert (found.invalid, found.unresolved) == ({}, [])
    (only,) = found.fragments
    known = {"name": "cart", "namespace": "shop", "hostname": "cart.shop.svc.cluster.local", "ports": {"8080": 80}}
    text = json.dumps({"binds": [{"port": 8080, "listeners": [{"routes": [only.value]}]}], "services": [known]})
    assert load(TextSource(text)).warnings == ()
    return only.value


def test_a_rule_is_a_route_of_a_name_of_its_own() -> None:
    found = result({"name": "first", "backendRefs": [to()]})
    (only,) = found.fragments
    assert (only.key, only.parent) == ("route/shop/calls.00.grpc.web", "listener/edge/main.web")
    assert only.value == {
        "name": "grpc/calls", "namespace": "shop", "ruleName": "first", "hostnames": ["calls.test"],
        "matches": [{"path": {"pathPrefix": "/"}}], "backends": [{"weight": 1, **CART, **HTTP2}],
    }  # fmt: skip
    assert file_name("calls") == "grpc/calls"
    assert found.used == [ObjectKey("shop", "cart")]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ({"service": "shop.Cart", "method": "Add"}, {"exact": "/shop.Cart/Add"}),
        ({"type": "Exact", "service": "shop.Cart"}, {"pathPrefix": "/shop.Cart"}),
        ({"type": "Exact", "method": "Add"}, {"regex": "/[^/]+/Add"}),
        ({"type": "RegularExpression", "service": "a|b", "method": "A.*"}, {"regex": "/(?:a|b)/(?:A.*)"}),
        ({"type": "RegularExpression", "service": "a|b"}, {"regex": "/(?:a|b)/[^/]+"}),
        ({"type": "RegularExpression", "method": "A.*"}, {"regex": "/[^/]+/(?:A.*)"}),
        (None, {"pathPrefix": "/"}),
    ],
)
def test_methods_are_paths(method: Json | None, path: Json) -> None:
    assert rule(matches=[{} if method is None else {"method": method}])["matches"] == [{"path": path}]


def test_headers_are_matched() -> None:
    headers = [{"name": "X", "value": "1"}, {"name": "x", "value": "2"}, {"name": "y", "type": "RegularExpression", "value": "a+"}]
    assert rule(matches=[{"headers": headers}])["matches"] == [
        {"path": {"pathPrefix": "/"}, "headers": [{"name": "X", "value": {"exact": "1"}}, {"name": "y", "value": {"regex": "a+"}}]}
    ]


@pytest.mark.parametrize("method", [{"service": "a)(b"}, {"method": "(?!a)"}])
def test_a_rule_with_a_pattern_that_is_none_leaves_the_others(method: Json) -> None:
    found = result({"matches": [{"method": {"type": "RegularExpression", **method}}], "backendRefs": [to()]}, {"backendRefs": [to()]})
    assert [one.key for one in found.fragments] == ["route/shop/calls.01.grpc.web"]
    assert [one.reason for one in found.invalid[0]] == ["UnsupportedValue"]


def test_filters_are_policies_of_rules_and_backends() -> None:
    edit = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}
    mirror = {"type": "RequestMirror", "requestMirror": {"backendRef": to()}}
    found = rule(filters=[edit, mirror], backendRefs=[to(filters=[edit])])
    assert found["policies"] == {"requestHeaderModifier": {"set": {"a": "b"}}, "requestMirror": {"backend": CART, "percentage": 1.0}}
    assert found["backends"] == [{"weight": 1, **CART, "policies": {"requestHeaderModifier": {"set": {"a": "b"}}, **HTTP2["policies"]}}]


def test_a_port_that_says_its_protocol_is_believed() -> None:
    found = result({"backendRefs": [to("old")]})
    assert "policies" not in found.fragments[0].value["backends"][0]


def test_a_rule_without_a_backend_says_unavailable() -> None:
    answer = rule(backendRefs=[])["policies"]["directResponse"]
    assert (answer["status"], answer["headers"]["grpc-status"]) == (200, "'14'")


def test_what_leads_nowhere_is_told() -> None:
    found = result({"backendRefs": [to("gone")]}, {"backendRefs": [to("gone"), to()]})
    assert [one.reason for one in found.unresolved] == ["BackendNotFound"] * 2
    all_of_them, one_of_two = (one.value["backends"] for one in found.fragments if one.parent == "listener/edge/main.web")
    broken = {"weight": 1, "routeGroup": "unresolved/unavailable"}
    assert (all_of_them, one_of_two) == ([broken], [broken, {"weight": 1, **CART} | HTTP2])
    (answer,) = {json.dumps(one.value["policies"]["directResponse"]) for one in found.fragments if one.parent == "group/unresolved/unavailable"}
    assert json.loads(answer)["headers"]["grpc-status"] == "'14'"
