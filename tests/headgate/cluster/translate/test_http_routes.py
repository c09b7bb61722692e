"""HTTPRoutes as routes of the file."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, http_route, listener, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.http_routes import http_route as translated
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import Attachment
from headgate.cluster.translate.routes import RouteResult

CART = {"weight": 1, "service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}
SNAPSHOT = Snapshot.of([service()])


def result(*rules: Json, hostnames: tuple[str, ...] = (), names: tuple[str, ...] = ("web",), **metadata: Any) -> RouteResult:
    attachments = [Attachment(ListenerState(listener(name)), hostnames) for name in names]
    places = {name: f"listener/edge/main.{name}" for name in names}
    return translated(SNAPSHOT, http_route("shop/cart", *rules, **metadata), attachments, places)


def rule(**fields: Any) -> Json:
    """Return the one route of a rule with these fields."""
    found = result({"backendRefs": [to()], **fields})
    assert (found.invalid, found.unresolved) == ({}, [])
    (only,) = found.fragments
    return only.value


def test_each_rule_is_a_route_at_each_listener() -> None:
    found = result({"name": "first", "backendRefs": [to()]}, {"backendRefs": [to()]}, hostnames=("a.test",), names=("web", "tls"))
    assert [(one.key, one.parent) for one in found.fragments] == [
        ("route/shop/cart.00.web", "listener/edge/main.web"), ("route/shop/cart.00.tls", "listener/edge/main.tls"),
        ("route/shop/cart.01.web", "listener/edge/main.web"), ("route/shop/cart.01.tls", "listener/edge/main.tls"),
    ]  # fmt: skip
    assert found.fragments[0].value == {
        "name": "cart", "namespace": "shop", "ruleName": "first", "hostnames": ["a.test"],
        "matches": [{"path": {"pathPrefix": "/"}}], "backends": [CART],
    }  # fmt: skip
    assert set(found.used) == {ObjectKey("shop", "cart")}


def test_older_routes_and_earlier_rules_come_first() -> None:
    older = result({"backendRefs": [to()]}, {"backendRefs": [to()]}).fragments
    newer = result({"backendRefs": [to()]}, creationTimestamp="2026-02-01T00:00:00Z").fragments
    orders = [one.order for one in (*older, *newer)]
    assert orders == sorted(orders)


@pytest.mark.parametrize(
    ("match", "ours"),
    [
        ({}, {"path": {"pathPrefix": "/"}}),
        ({"path": {"type": "Exact", "value": "/a"}}, {"path": {"exact": "/a"}}),
        ({"path": {"type": "RegularExpression", "value": "/a.*"}}, {"path": {"regex": "/a.*"}}),
        ({"path": {"value": "/a"}, "method": "POST"}, {"path": {"pathPrefix": "/a"}, "method": "POST"}),
        (
            {"headers": [{"name": "X", "value": "1"}, {"name": "x", "value": "2"}, {"name": "y", "type": "RegularExpression", "value": "a+"}]},
            {"path": {"pathPrefix": "/"}, "headers": [{"name": "X", "value": {"exact": "1"}}, {"name": "y", "value": {"regex": "a+"}}]},
        ),
        (
            {"queryParams": [{"name": "q", "value": "1"}, {"name": "q", "value": "2"}, {"name": "Q", "type": "Exact", "value": "3"}]},
            {"path": {"pathPrefix": "/"}, "query": [{"name": "q", "value": {"exact": "1"}}, {"name": "Q", "value": {"exact": "3"}}]},
        ),
    ],
)  # fmt: skip
def test_matches(match: Json, ours: Json) -> None:
    assert rule(matches=[match])["matches"] == [ours]


@pytest.mark.parametrize(
    ("fields", "policies"),
    [
        ({"timeouts": {"request": "3s", "backendRequest": "500ms"}}, {"timeout": {"requestTimeout": "3s", "backendRequestTimeout": "500ms"}}),
        ({"timeouts": {"request": "0s", "backendRequest": "10s"}}, {"timeout": {"backendRequestTimeout": "10s"}}),
        ({"timeouts": {"request": "0h0m0s"}}, None),
        ({"retry": {"attempts": 2, "codes": [500, 503], "backoff": "10ms"}}, {"retry": {"attempts": 2, "codes": [500, 503], "backoff": "10ms"}}),
        ({"retry": {"attempts": 1000}}, {"retry": {"attempts": 255, "codes": []}}),
        ({"retry": {"attempts": 0, "codes": [500]}}, None),
    ],
)
def test_timeouts_and_retries(fields: Json, policies: Json | None) -> None:
    assert rule(**fields).get("policies") == policies


def test_backends_have_weights_and_policies_of_their_own() -> None:
    filters = [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}]
    found = rule(backendRefs=[to(weight=0), to(weight=9, filters=filters)])
    assert found["backends"] == [
        CART | {"weight": 0}, CART | {"weight": 9, "policies": {"requestHeaderModifier": {"set": {"a": "b"}}}},
    ]  # fmt: skip


def test_what_leads_nowhere_keeps_its_share_and_is_told() -> None:
    found = result({"backendRefs": [to(), to("gone", weight=3)]})
    assert found.fragments[0].value["backends"] == [CART, {"weight": 3, "backend": "unresolved/shop/gone"}]
    assert [one.reason for one in found.unresolved] == ["BackendNotFound"]


def test_a_rule_without_a_backend_is_one_of_the_file_which_answers_500_unless_a_policy_does() -> None:
    assert "policies" not in rule(backendRefs=[])
    redirect = rule(backendRefs=[], filters=[{"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}])
    assert list(redirect["policies"]) == ["requestRedirect"]


def test_a_rule_that_cannot_be_in_force_leaves_the_others() -> None:
    found = result({"filters": [{"type": "Unheard"}]}, {"backendRefs": [to()]})
    assert [one.key for one in found.fragments] == ["route/shop/cart.01.web"]
    assert list(found.invalid) == [0]


@pytest.mark.parametrize(
    "match",
    [
        {"path": {"type": "RegularExpression", "value": "/(a"}},
        {"headers": [{"name": "x", "type": "RegularExpression", "value": "[a"}]},
        {"queryParams": [{"name": "q", "type": "RegularExpression", "value": "(?=a)"}]},
    ],
)
def test_a_rule_with_a_pattern_that_is_none_leaves_the_others(match: Json) -> None:
    found = result({"matches": [{}, match], "backendRefs": [to()]}, {"backendRefs": [to()]})
    assert [one.key for one in found.fragments] == ["route/shop/cart.01.web"]
    assert [(one.reason, "not a regular expression" in one.message) for one in found.invalid[0]] == [("UnsupportedValue", True)]


def test_references_of_a_route_without_listeners_are_looked_at() -> None:
    found = result({"backendRefs": [to("gone")]}, names=())
    assert found.fragments == []
    assert [one.reason for one in found.unresolved] == ["BackendNotFound"]
