"""ListenerSets: who may add listeners to a Gateway, and which of them win."""

from __future__ import annotations

from typing import Any

import pytest
from certificates_rig import secret
from manifests import Json, gateway, gateway_class, grant, http_route, listener, listener_set, made, of_set, service

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.cluster.translate.gateway import Acknowledged

MAIN = ObjectKey("edge", "main")
LATER = "2026-02-01T00:00:00Z"
BOTH = {"Accepted": ("True", "Accepted"), "Programmed": ("True", "Programmed")}
TEAM = made("Namespace", "shop", {}, "v1", labels={"team": "a"})


def world(*documents: Json) -> World:
    return everything(Snapshot.of([gateway_class(), secret(), service(), TEAM, *documents]), {MAIN: Acknowledged(1)})


def content(found: World, kind: str, name: str) -> Json:
    (status,) = [one for one in found.statuses if (one.kind.kind, str(one.key)) == (kind, name)]
    return status.content


def said(holder: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in holder["conditions"]}


def opened(found: World) -> dict[str, list[str]]:
    """Return by port and listener the names of routes there."""
    file = assembled(found.gateways[MAIN])
    return {f"{bind['port']} {one['name']}": [route["name"] for route in one.get("routes", ())] for bind in file["binds"] for one in bind["listeners"]}


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        (None, set()),
        ({"from": "None"}, set()),
        ({"from": "Same"}, {"edge/own"}),
        ({"from": "All"}, {"edge/own", "shop/more"}),
        ({"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}, {"shop/more"}),
    ],
)
def test_a_gateway_says_whose_sets_it_takes(rule: Json | None, taken: set[str]) -> None:
    owner = gateway()
    if rule is not None:
        owner["spec"]["allowedListeners"] = {"namespaces": rule}
    found = world(owner, listener_set("edge/own", listener("own", 8081)), listener_set("shop/more"))
    refused = {"Accepted": ("False", "NotAllowed"), "Programmed": ("False", "NotAllowed")}
    for name in ("edge/own", "shop/more"):
        assert said(content(found, "ListenerSet", name)) == (BOTH if name in taken else refused)
    assert content(found, "Gateway", "edge/main")["attachedListenerSets"] == len(taken)
    assert {one.split()[1].rpartition("/")[0] for one in opened(found)} == {""} | taken


def test_a_set_whose_gateway_is_not_ours_has_no_status() -> None:
    found = world(gateway(sets="All", name="edge/other"), listener_set("shop/more"))
    assert "ListenerSet" not in {one.kind.kind for one in found.statuses}


def test_of_listeners_that_cannot_be_told_apart_the_one_of_the_gateway_and_then_of_the_oldest_set_is_served() -> None:
    found = world(
        gateway(listener("a", hostname="a.test"), sets="All"),
        listener_set("shop/young", listener("x", 80, hostname="b.test"), listener("y", 80, "TCP"), creationTimestamp=LATER),
        listener_set("shop/old", listener("x", 80, hostname="b.test"), listener("z", 80, hostname="a.test")),
        listener_set("shop/all", listener("c", 80, "TCP")),
    )
    assert list(opened(found)) == ["80 a", "80 shop/old/x"]
    assert said(content(found, "ListenerSet", "shop/old")) == {"Accepted": ("True", "ListenersNotValid"), "Programmed": ("True", "Programmed")}
    listeners = {one["name"]: said(one) for one in content(found, "ListenerSet", "shop/old")["listeners"]}
    assert listeners["x"]["Conflicted"] == ("False", "NoConflicts")
    assert {name: listeners["z"][name] for name in ("Accepted", "Conflicted", "Programmed")} == {
        "Accepted": ("False", "HostnameConflict"), "Conflicted": ("True", "HostnameConflict"), "Programmed": ("False", "HostnameConflict"),
    }  # fmt: skip
    for name in ("shop/young", "shop/all"):
        assert said(content(found, "ListenerSet", name)) == {"Accepted": ("False", "ListenersNotValid"), "Programmed": ("False", "ListenersNotValid")}
    assert said(content(found, "ListenerSet", "shop/young")["listeners"][1])["Conflicted"] == ("True", "ProtocolConflict")
    assert said(content(found, "Gateway", "edge/main")) == BOTH
    assert content(found, "Gateway", "edge/main")["attachedListenerSets"] == 1


def test_sets_are_told_of_before_their_gateway() -> None:
    found = world(gateway(sets="Same"), listener_set("edge/in"), listener_set("shop/out"))
    assert [one.kind.kind for one in found.statuses] == ["GatewayClass", "ListenerSet", "ListenerSet", "Gateway"]


def test_a_conflict_tells_nothing_of_another_namespace() -> None:
    found = world(gateway(listener("hidden"), sets="All"), listener_set("shop/more", listener("x", 80)))
    assert "hidden" not in str(content(found, "ListenerSet", "shop/more"))


def test_routes_name_the_gateway_or_a_set() -> None:
    section = of_set(sectionName="b")
    documents = (
        gateway(sets="All"), listener_set("shop/more", listener("a", 8080), listener("b", 8081)),
        http_route("shop/main"), http_route("shop/set", parent=of_set()), http_route("shop/section", parent=section),
        http_route("shop/port", parent=of_set(port=8080)), http_route("shop/gone", parent=of_set("gone")),
        http_route("shop/wrong", parent=of_set(sectionName="web")),
    )  # fmt: skip
    found = world(*documents)
    assert opened(found) == {"80 web": ["main"], "8080 shop/more/a": ["port", "set"], "8081 shop/more/b": ["section", "set"]}
    assert {one["name"]: one["attachedRoutes"] for one in content(found, "ListenerSet", "shop/more")["listeners"]} == {"a": 2, "b": 2}
    assert [one["attachedRoutes"] for one in content(found, "Gateway", "edge/main")["listeners"]] == [1]
    (parent,) = content(found, "HTTPRoute", "shop/section")["parents"]
    assert (parent["parentRef"], said(parent)["Accepted"]) == (section, ("True", "Accepted"))
    assert said(content(found, "HTTPRoute", "shop/wrong")["parents"][0])["Accepted"] == ("False", "NoMatchingParent")
    assert "shop/gone" not in {str(one.key) for one in found.statuses}


def test_a_route_at_a_set_that_is_not_taken_has_no_parent() -> None:
    found = world(gateway(), listener_set("shop/more"), http_route("shop/set", parent=of_set()))
    assert said(content(found, "HTTPRoute", "shop/set")["parents"][0])["Accepted"] == ("False", "NoMatchingParent")


def test_the_namespace_of_a_set_is_that_of_its_listeners() -> None:
    own: dict[str, Any] = {"allowedRoutes": {"namespaces": {"from": "Same"}}}
    found = world(
        gateway(sets="All"), listener_set("store/more", listener("a", 8080, **own)),
        http_route("store/in", parent=of_set()), http_route("shop/out", parent=of_set(namespace="store")),
    )  # fmt: skip
    assert opened(found)["8080 store/more/a"] == ["in"]


@pytest.mark.parametrize(("origin", "reason"), [("ListenerSet", "ResolvedRefs"), ("Gateway", "RefNotPermitted")])
def test_a_set_needs_grants_of_its_own_for_certificates(origin: str, reason: str) -> None:
    tls = {"tls": {"certificateRefs": [{"name": "tls", "namespace": "edge"}]}}
    allowed = grant("edge/g", {"group": "gateway.networking.k8s.io", "kind": origin, "namespace": "shop"}, {"group": "", "kind": "Secret"})
    found = world(gateway(sets="All"), listener_set("shop/more", listener("s", 443, "HTTPS", **tls)), allowed)
    held = content(found, "ListenerSet", "shop/more")
    assert said(held["listeners"][0])["ResolvedRefs"][1] == reason
    assert said(held)["Accepted"][1] == ("Accepted" if reason == "ResolvedRefs" else "ListenersNotValid")


def test_a_set_of_a_gateway_that_is_not_accepted() -> None:
    owner = gateway(sets="All")
    owner["spec"]["addresses"] = [{"type": "test.dev/Named", "value": "x"}]
    assert said(content(world(owner, listener_set()), "ListenerSet", "shop/more")) == {
        "Accepted": ("False", "ParentNotAccepted"), "Programmed": ("False", "ParentNotAccepted"),
    }  # fmt: skip
