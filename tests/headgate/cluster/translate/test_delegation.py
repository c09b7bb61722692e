"""HTTPRoutes that hand requests on to other HTTPRoutes."""

from __future__ import annotations

import random
from typing import Any

import pytest
from manifests import Json, gateway, gateway_class, grant, http_route, listener, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.fragments import assembled
from headgate.config.load import TextSource, load
from headgate.document.write import write

MAIN = ObjectKey("edge", "main")
FINE = {"Accepted": ("True", "Accepted"), "ResolvedRefs": ("True", "ResolvedRefs")}
CART = {"weight": 1, "service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}


def routes(name: str, **more: Any) -> Json:
    return {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": name, **more}


def below(name: str, *rules: Json, above: str | None = None, **metadata: Any) -> Json:
    """Return a route without parents, or below another one."""
    namespace, _, own = (above or "/").rpartition("/")
    route = http_route(name, *rules, parent={"kind": "HTTPRoute", "name": own, "namespace": namespace}, **metadata)
    if above is None:
        del route["spec"]["parentRefs"]
    return route


def above(name: str, *references: Json, **more: Any) -> Json:
    return http_route(name, {"backendRefs": list(references)}, **more)


def path(value: str) -> Json:
    return {"matches": [{"path": {"value": value}}], "backendRefs": [to()]}


def world(*documents: Json) -> World:
    return everything(Snapshot.of([gateway_class(), gateway(listener(), listener("more", 81)), service(), *documents]), {})


def file(*documents: Json) -> Json:
    return assembled(world(*documents).gateways[MAIN])


def groups(found: Json) -> dict[str, list[str]]:
    """Return the names of the routes of each group."""
    return {one["name"]: [each["name"] for each in one["routes"]] for one in found.get("routeGroups", ())}


def said(found: World, name: str) -> list[tuple[str, dict[str, tuple[str, str]]]]:
    """Return by parent the conditions of a route."""
    return [
        (f"{one['parentRef'].get('kind', 'Gateway')} {one['parentRef']['name']}", {each["type"]: (each["status"], each["reason"]) for each in one["conditions"]})
        for status in found.statuses
        if (status.kind.kind, status.key.name) == ("HTTPRoute", name)
        for one in status.content["parents"]
    ]


def test_a_route_hands_requests_on_to_routes_that_name_it_or_nobody() -> None:
    documents = (
        above("shop/top", routes("*"), to(weight=3)), below("shop/named", path("/a"), above="shop/top"), below("shop/free", path("/b")),
        below("shop/others", path("/c"), above="shop/other"), http_route("shop/attached", path("/d")),
    )  # fmt: skip
    found = file(*documents)
    assert groups(found) == {"shop/top/shop/*": ["free", "named"]}
    for place in found["binds"]:
        top = next(one for one in place["listeners"][0]["routes"] if one["name"] == "top")
        assert top["backends"] == [{"weight": 1, "routeGroup": "shop/top/shop/*"}, CART | {"weight": 3}]
    assert found["routeGroups"][0]["routes"][1] == {
        "name": "named", "namespace": "shop", "matches": [{"path": {"pathPrefix": "/a"}}], "backends": [CART],
    }  # fmt: skip
    told = world(*documents)
    assert said(told, "named") == [("HTTPRoute top", FINE)]
    assert said(told, "free") == []
    assert said(told, "others") == []
    assert said(told, "top") == [("Gateway main", FINE)]
    (status,) = [one for one in told.statuses if one.kind.kind == "Gateway"]
    assert [one["attachedRoutes"] for one in status.content["listeners"]] == [2, 2]


@pytest.mark.parametrize(
    ("selector", "found"),
    [("a", ["a"]), ("*", ["a", "b", "c"]), ("team=x", ["a", "c"]), ("team=y", ["b"]), ("team=z", None), ("gone", None)],
)
def test_who_is_meant(selector: str, found: list[str] | None) -> None:
    documents = [
        above("shop/top", routes(selector)), below("shop/a", labels={"team": "x"}), below("shop/b", labels={"team": "y"}),
        below("shop/c", labels={"team": "x"}), below("store/d", labels={"team": "x"}),
    ]  # fmt: skip
    assert groups(file(*documents)) == ({} if found is None else {f"shop/top/shop/{selector}": found})
    reason = "BackendNotFound" if found is None else "ResolvedRefs"
    assert said(world(*documents), "top")[0][1]["ResolvedRefs"][1] == reason


def test_a_route_of_another_namespace_says_so_itself_or_by_a_grant() -> None:
    documents = [above("shop/top", routes("*", namespace="store")), below("store/free"), below("store/named", above="shop/top")]
    one = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}
    allowed = grant("store/g", {**one, "namespace": "shop"}, one)
    assert groups(file(*documents)) == {"shop/top/store/*": ["named"]}
    assert groups(file(*documents, allowed)) == {"shop/top/store/*": ["free", "named"]}


def test_loops_are_cut_where_the_way_comes_round() -> None:
    documents = (
        above("shop/top", routes("a")), below("shop/a", {"backendRefs": [routes("b")]}), below("shop/b", {"backendRefs": [routes("a")]}, path("/x")),
        below("shop/self", {"backendRefs": [routes("self")]}), above("shop/other", routes("b"), routes("self")),
    )  # fmt: skip
    found = file(*documents)
    assert groups(found) == {
        "shop/top/shop/a": ["a"], "shop/top>shop/a/shop/b": ["b", "b"],
        "shop/other/shop/b": ["b", "b"], "shop/other>shop/b/shop/a": ["a"], "shop/other/shop/self": ["self"],
    }  # fmt: skip
    loaded = load(TextSource(write(found)))
    assert not [one for one in loaded.warnings if "unresolved" not in one]


def test_ways_that_are_too_long_end() -> None:
    documents = [above("shop/top", routes("r0")), *(below(f"shop/r{index}", {"backendRefs": [routes(f"r{index + 1}")]}) for index in range(12)), below("shop/r12")]
    found = file(*documents)
    assert len(groups(found)) == 8
    load(TextSource(write(found)))


def test_ways_that_are_too_wide_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each route leads to the four routes of the next level: 4 ** 8 rules at the end. A smaller limit ends them in the same way, and sooner."""
    monkeypatch.setattr("headgate.cluster.translate.filters.MOST_DELEGATED", 500)
    levels = [[below(f"shop/r{level}-{index}", {"backendRefs": [routes(f"level={level + 1}")]}, labels={"level": str(level)}) for index in range(4)] for level in range(8)]
    documents = [above("shop/top", routes("level=0")), *(one for level in levels for one in level), below("shop/end", labels={"level": "8"})]
    found = file(*documents)
    load(TextSource(write(found)))
    assert said(world(*documents), "top")[0][1]["ResolvedRefs"] == ("False", "UnsupportedValue")


def test_faults_of_a_route_below_are_its_own() -> None:
    wrong = {"filters": [{"type": "Unheard"}], "backendRefs": [to()]}
    documents = (
        above("shop/top", routes("*")), below("shop/part", wrong, {"backendRefs": [to("gone")]}, above="shop/top"), below("shop/none", wrong, above="shop/top"),
    )  # fmt: skip
    told = world(*documents)
    assert said(told, "top") == [("Gateway main", FINE)]
    assert said(told, "part") == [
        ("HTTPRoute top", {"Accepted": ("True", "Accepted"), "PartiallyInvalid": ("True", "UnsupportedValue"), "ResolvedRefs": ("False", "BackendNotFound")})
    ]
    assert said(told, "none")[0][1]["Accepted"] == ("False", "UnsupportedValue")
    assert groups(file(*documents)) == {"shop/top/shop/*": ["part"]}


def test_a_route_below_several_gateways_is_told_of_its_parent_once() -> None:
    both = above("shop/top", routes("a"))
    both["spec"]["parentRefs"].append({"name": "other", "namespace": "edge"})
    told = world(both, gateway(name="edge/other"), below("shop/a", above="shop/top"))
    assert said(told, "a") == [("HTTPRoute top", FINE)]


def test_the_order_of_events_does_not_matter() -> None:
    documents = [
        gateway_class(), gateway(), service(), above("shop/top", routes("*")), above("shop/also", routes("a")),
        below("shop/a", path("/a")), below("shop/b", {"backendRefs": [routes("a")]}), below("shop/c", above="shop/also"),
    ]  # fmt: skip
    first = everything(Snapshot.of(documents), {})
    for seed in range(10):
        random.Random(seed).shuffle(documents)
        other = everything(Snapshot.of(documents), {})
        assert (other.statuses, assembled(other.gateways[MAIN])) == (first.statuses, assembled(first.gateways[MAIN]))
