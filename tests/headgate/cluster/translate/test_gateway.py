"""A Gateway with what belongs to it."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, gateway, gateway_class, grpc_route, http_route, listener, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.deployed import Placement
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway import Acknowledged, GatewayTranslation, is_own, translate

ROUTED = {"name": "main", "namespace": "edge"}
UNTOLD = Acknowledged()


def translation(owner: Json, *routes: Json, acknowledged: Acknowledged = UNTOLD) -> GatewayTranslation:
    return translate(Snapshot.of([gateway_class(), owner, service(), *routes]), owner, [], list(routes), acknowledged)


def conditions(content: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in content["conditions"]}


def about(found: GatewayTranslation) -> dict[str, tuple[str, str]]:
    """Return the conditions of the one parent of the one route."""
    ((only,),) = found.parents.values()
    assert only["controllerName"] == "headgate.dev/headgate"
    return conditions(only)


def test_a_gateway_is_of_the_controller_that_its_class_names() -> None:
    assert is_own(Snapshot.of([gateway_class()]), gateway())
    assert not is_own(Snapshot.of([gateway_class(controller="other.test/x")]), gateway())
    assert not is_own(Snapshot.of([]), gateway())


@pytest.mark.parametrize(
    ("acknowledged", "programmed"),
    [
        (Acknowledged(), ("False", "Pending")),
        (Acknowledged(4), ("False", "Pending")),
        (Acknowledged(5), ("True", "Programmed")),
        (Acknowledged(5, "route/a: no such step"), ("False", "Invalid")),
    ],
)
def test_programmed_is_what_data_planes_have_taken(acknowledged: Acknowledged, programmed: tuple[str, str]) -> None:
    found = translation(gateway(generation=5), acknowledged=acknowledged).statuses[0].content
    assert conditions(found) == {"Accepted": ("True", "Accepted"), "Programmed": programmed}
    assert conditions(found["listeners"][0])["Programmed"] == programmed
    assert {one["observedGeneration"] for one in found["conditions"]} == {5}
    if acknowledged.rejection:
        assert acknowledged.rejection in found["conditions"][1]["message"]


@pytest.mark.parametrize(("looked_at", "told"), [(0, 5), (4, 4), (5, 5), (6, 5)])
def test_programmed_is_about_the_generation_that_was_deployed(looked_at: int, told: int) -> None:
    owner = gateway(generation=5)
    there = Placement(refusal=Unmet("AddressNotUsable", "no"), generation=looked_at)
    snapshot = Snapshot.of([gateway_class(), owner])
    found = translate(snapshot, owner, [], [], Acknowledged(5), there).statuses[0].content
    assert {one["type"]: one["observedGeneration"] for one in found["conditions"]} == {"Accepted": 5, "Programmed": told}


@pytest.mark.parametrize(
    ("listeners", "accepted"),
    [
        ((listener("a"), listener("b")), ("True", "ListenersNotValid")),
        ((listener(protocol="UDP"),), ("False", "ListenersNotValid")),
        ((listener(protocol="HTTPS"),), ("False", "ListenersNotValid")),
    ],
)
def test_some_listeners_or_all_are_bad(listeners: tuple[Json, ...], accepted: tuple[str, str]) -> None:
    found = translation(gateway(*listeners), acknowledged=Acknowledged(1)).statuses[0].content
    holds = accepted[0] == "True"
    assert conditions(found) == {"Accepted": accepted, "Programmed": ("True", "Programmed") if holds else ("False", "Invalid")}


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"type": "IPAddress", "value": "10.0.0.1"}, {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}),
        ({"value": "10.0.0.1"}, {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}),
        ({"type": "Hostname", "value": "a.test"}, {"Accepted": ("True", "Accepted"), "Programmed": ("False", "AddressNotUsable")}),
        ({"type": "test.dev/Named", "value": "x"}, {"Accepted": ("False", "UnsupportedAddress"), "Programmed": ("False", "Invalid")}),
    ],
)
def test_addresses(address: Json, said: dict[str, Any]) -> None:
    owner = gateway()
    owner["spec"]["addresses"] = [address]
    assert conditions(translation(owner, acknowledged=Acknowledged(1)).statuses[0].content) == said


def test_attached_routes_are_counted_once_for_each_listener() -> None:
    twice = http_route("shop/twice", parent=ROUTED)
    twice["spec"]["parentRefs"] *= 2
    only_b = http_route("shop/b", parent={**ROUTED, "sectionName": "b"})
    nowhere = http_route("shop/c", parent={**ROUTED, "sectionName": "c"})
    found = translation(gateway(listener("a"), listener("b", port=81), listener("s", port=82, protocol="HTTPS")), twice, only_b, nowhere)
    assert [one["attachedRoutes"] for one in found.statuses[0].content["listeners"]] == [1, 2, 1]
    keys = [one.key for one in found.fragments]
    assert len(keys) == len(set(keys))
    assert [key for key in keys if key.startswith("route/")] == ["route/shop/twice.00.a", "route/shop/twice.00.b", "route/shop/b.00.b"]


@pytest.mark.parametrize(
    ("route", "said"),
    [
        (http_route(), {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}),
        (http_route("shop/x", {"backendRefs": [to("gone")]}), {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("False", "BackendNotFound")}),
        (
            http_route("shop/x", {"filters": [{"type": "X"}]}),
            {"Accepted": ("False", "UnsupportedValue"), "ResolvedRefs": ("True", "ResolvedRefs")},
        ),
        (
            http_route("shop/x", {"filters": [{"type": "X"}]}, {"backendRefs": [to()]}),
            {"Accepted": ("True", "Accepted"), "PartiallyInvalid": ("True", "UnsupportedValue"), "ResolvedRefs": ("True", "ResolvedRefs")},
        ),
        (
            http_route("shop/x", {"backendRefs": [to("gone")]}, parent={**ROUTED, "port": 9}),
            {"Accepted": ("False", "NoMatchingParent"), "ResolvedRefs": ("False", "BackendNotFound")},
        ),
    ],
)
def test_conditions_of_a_route(route: Json, said: dict[str, Any]) -> None:
    assert about(translation(gateway(), route)) == said


def test_an_older_route_of_another_kind_keeps_its_host_names() -> None:
    older, newer = http_route(), grpc_route(creationTimestamp="2026-02-01T00:00:00Z", hostnames=("a.test",))
    found = translation(gateway(), older, newer)
    assert conditions(found.parents["GRPCRoute", ObjectKey("shop", "calls")][0])["Accepted"] == ("False", "HostnameConflict")
    assert found.statuses[0].content["listeners"][0]["attachedRoutes"] == 1
    assert [one.key for one in found.fragments if one.place == "routes"] == ["route/shop/cart.00.web"]
    # One that is not accepted keeps nothing.
    bad = http_route("shop/bad", {"filters": [{"type": "X"}]})
    found = translation(gateway(), bad, newer)
    assert conditions(found.parents["GRPCRoute", ObjectKey("shop", "calls")][0])["Accepted"] == ("True", "Accepted")


def test_only_ports_that_can_be_opened_are() -> None:
    found = translation(gateway(listener("a", port=81), listener("b"), listener("c", port=443, protocol="HTTPS")))
    assert assembled(found.fragments)["binds"] == [
        {"port": 80, "listeners": [{"name": "b", "namespace": "edge", "protocol": "HTTP"}]},
        {"port": 81, "listeners": [{"name": "a", "namespace": "edge", "protocol": "HTTP"}]},
    ]
