"""TLSRoutes and TCPRoutes as routes of connections."""

from __future__ import annotations

from typing import Any

import pytest
from certificates_rig import secret
from manifests import (
    Json,
    gateway,
    gateway_backend,
    gateway_class,
    listener,
    own,
    passthrough,
    service,
    tcp_route,
    tls_route,
    to,
)

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled

CART = {"weight": 1, "service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}
TERMINATES = listener("end", 8443, "TLS", tls={"mode": "Terminate", "certificateRefs": [{"name": "tls"}]})
LATER = "2026-02-01T00:00:00Z"


def world(*documents: Json) -> World:
    return everything(Snapshot.of([gateway_class(), secret(), service(), *documents]), {})


def routed(*documents: Json) -> dict[str, list[Json]]:
    """Return the routes of each listener."""
    file = assembled(world(*documents).gateways[ObjectKey("edge", "main")])
    return {one["name"]: one.get("tcpRoutes", []) for bind in file["binds"] for one in bind["listeners"]}


def said(found: World, kind: str, name: str) -> dict[str, tuple[str, str]]:
    """Return the conditions of the first parent of a route."""
    (status,) = [one for one in found.statuses if (one.kind.kind, one.key.name) == (kind, name)]
    return {one["type"]: (one["status"], one["reason"]) for one in status.content["parents"][0]["conditions"]}


def attached(found: World) -> dict[str, int]:
    (status,) = [one for one in found.statuses if one.kind.kind == "Gateway"]
    return {one["name"]: one["attachedRoutes"] for one in status.content["listeners"]}


def test_a_tls_route_has_the_host_names_of_both() -> None:
    route = tls_route("shop/a", {"name": "only", "backendRefs": [to(), to(weight=3)]}, hostnames=("x.a.test", "y.test"))
    assert routed(gateway(passthrough(hostname="*.a.test"), TERMINATES), route) == {
        "tls": [{"name": "tls/a", "namespace": "shop", "ruleName": "only", "hostnames": ["x.a.test"], "backends": [CART, CART | {"weight": 3}]}],
        "end": [{"name": "tls/a", "namespace": "shop", "ruleName": "only", "hostnames": ["x.a.test", "y.test"], "backends": [CART, CART | {"weight": 3}]}],
    }  # fmt: skip


def test_a_tcp_route_has_all_connections_of_its_listeners() -> None:
    documents = gateway(listener("raw", 9000, "TCP"), TERMINATES, passthrough()), tcp_route("shop/a")
    assert routed(*documents) == {
        "raw": [{"name": "tcp/a", "namespace": "shop", "backends": [CART]}],
        "end": [{"name": "tcp/a", "namespace": "shop", "backends": [CART]}],
        "tls": [],
    }
    assert attached(world(*documents)) == {"raw": 1, "end": 1, "tls": 0}


@pytest.mark.parametrize(
    ("spec", "route", "reason"),
    [
        (listener(), tls_route("shop/a", hostnames=("a.test",)), "NotAllowedByListeners"),
        (listener(), tcp_route("shop/a"), "NotAllowedByListeners"),
        (passthrough(), tcp_route("shop/a"), "NotAllowedByListeners"),
        (passthrough(hostname="b.test"), tls_route("shop/a", hostnames=("a.test",)), "NoMatchingListenerHostname"),
        (passthrough(), tls_route("shop/a", hostnames=("a.test",), parent={"name": "main", "namespace": "edge", "sectionName": "x"}), "NoMatchingParent"),
    ],
)  # fmt: skip
def test_why_a_route_is_not_attached(spec: Json, route: Json, reason: str) -> None:
    found = world(gateway(spec), route)
    assert said(found, route["kind"], "a")["Accepted"] == ("False", reason)
    assert attached(found) == {spec["name"]: 0}


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (to("gone"), "BackendNotFound"),
        (to("far", namespace="store"), "RefNotPermitted"),
        (to("x", group="other.test", kind="Thing"), "InvalidKind"),
        (own("model"), "UnsupportedValue"),
        (own("keyed"), "UnsupportedValue"),
    ],
)
def test_what_leads_nowhere_keeps_its_place(reference: Json, reason: str) -> None:
    documents = (
        gateway(passthrough()), tls_route("shop/a", {"backendRefs": [reference]}, hostnames=("a.test",)), service("store/far"),
        gateway_backend("shop/model", ai={"provider": {"openai": {}}}),
        gateway_backend("shop/keyed", static={"host": "a.test", "port": 1}, policies={"auth": {"key": "k"}}),
    )  # fmt: skip
    assert said(world(*documents), "TLSRoute", "a") == {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("False", reason)}
    assert [one["backend"].split("/")[0] for one in routed(*documents)["tls"][0]["backends"]] == ["unresolved"]


def test_a_backend_that_is_a_host_takes_connections() -> None:
    documents = gateway(passthrough()), tls_route("shop/a", {"backendRefs": [own("away")]}, hostnames=("a.test",)), gateway_backend("shop/away")
    assert routed(*documents)["tls"][0]["backends"] == [{"weight": 1, "backend": "shop/away"}]
    assert said(world(*documents), "TLSRoute", "a")["ResolvedRefs"] == ("True", "ResolvedRefs")


def test_of_rules_that_nothing_tells_apart_the_first_has_all() -> None:
    documents = gateway(listener("raw", 9000, "TCP")), tcp_route("shop/a", {"backendRefs": [to()]}, {"backendRefs": [to(weight=2)]})
    assert [one["backends"] for one in routed(*documents)["raw"]] == [[CART]]
    assert said(world(*documents), "TCPRoute", "a")["PartiallyInvalid"] == ("True", "UnsupportedValue")


def named(route: Any, name: str, *hosts: str, created: str | None = None) -> Json:
    age = {} if created is None else {"creationTimestamp": created}
    return dict(route(name, hostnames=hosts, **age))


def test_the_oldest_route_has_a_host_name() -> None:
    documents = (
        gateway(passthrough(), listener("raw", 9000, "TCP")),
        named(tls_route, "shop/b", "a.test", "b.test"), named(tls_route, "shop/a", "a.test", "c.test", created=LATER),
        named(tls_route, "shop/c", "b.test", created=LATER),
        named(tcp_route, "shop/y"), named(tcp_route, "shop/x", created=LATER),
    )  # fmt: skip
    found = world(*documents)
    assert {name: [(one["name"], one.get("hostnames")) for one in routes] for name, routes in routed(*documents).items()} == {
        "tls": [("tls/b", ["a.test", "b.test"]), ("tls/a", ["c.test"])], "raw": [("tcp/y", None)],
    }  # fmt: skip
    assert said(found, "TLSRoute", "c")["Accepted"] == ("False", "HostnameConflict")
    assert said(found, "TCPRoute", "x")["Accepted"] == ("False", "HostnameConflict")
    assert said(found, "TLSRoute", "a")["Accepted"] == ("True", "Accepted")
    assert attached(found) == {"tls": 2, "raw": 1}
