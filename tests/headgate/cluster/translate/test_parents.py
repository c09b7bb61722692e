"""Which listeners a route attaches to, and why not to others."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import Json, gateway, http_route, listener, made

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.listeners import listeners
from headgate.cluster.translate.parents import attachments, gateway_named

SHOPS = made("Namespace", "shop", {}, "v1", labels={"team": "a"})
MAIN = {"name": "main", "namespace": "edge"}


def attached(route: Json, *specs: Json) -> list[tuple[str, tuple[str, ...]]] | str:
    """Return the names and host names of listeners, or the reason why there are none."""
    snapshot = Snapshot.of([SHOPS])
    found = attachments(snapshot, route, route["spec"]["parentRefs"][0], listeners(snapshot, gateway(*specs)))
    return found.reason if isinstance(found, Unmet) else [(one.listener.name, one.hostnames) for one in found]


def from_(rule: str, **more: Any) -> Json:
    return listener(allowedRoutes={"namespaces": {"from": rule, **more}})


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ({"name": "main"}, ObjectKey("shop", "main")),
        (MAIN, ObjectKey("edge", "main")),
        ({"name": "main", "kind": "Service", "group": ""}, None),
        ({"name": "main", "kind": "ListenerSet"}, None),
    ],
)
def test_what_a_parent_reference_names(reference: Json, key: ObjectKey | None) -> None:
    assert gateway_named(Snapshot.of([]), http_route(), reference) == key


def test_a_route_attaches_to_all_listeners_unless_it_names_one() -> None:
    specs = (listener("a"), listener("b", port=81))
    assert attached(http_route(parent=MAIN), *specs) == [("a", ()), ("b", ())]
    assert attached(http_route(parent={**MAIN, "sectionName": "b"}), *specs) == [("b", ())]
    assert attached(http_route(parent={**MAIN, "port": 80}), *specs) == [("a", ())]
    assert attached(http_route(parent={**MAIN, "sectionName": "c"}), *specs) == "NoMatchingParent"
    assert attached(http_route(parent={**MAIN, "port": 82}), *specs) == "NoMatchingParent"
    assert attached(http_route(parent={**MAIN, "sectionName": "a", "port": 81}), *specs) == "NoMatchingParent"


@pytest.mark.parametrize(
    ("spec", "namespace", "allowed"),
    [
        (from_("All"), "shop", True),
        (from_("Same"), "shop", False),
        (from_("Same"), "edge", True),
        (listener(allowedRoutes={}), "shop", False),
        (from_("Selector", selector={"matchLabels": {"team": "a"}}), "shop", True),
        (from_("Selector", selector={"matchLabels": {"team": "a"}}), "other", False),
        (from_("Selector", selector={"matchLabels": {"kubernetes.io/metadata.name": "other"}}), "other", True),
        (from_("None"), "edge", False),
        (listener(allowedRoutes={"kinds": [{"kind": "GRPCRoute"}], "namespaces": {"from": "All"}}), "shop", False),
    ],
)
def test_listeners_say_whose_routes_they_take(spec: Json, namespace: str, allowed: bool) -> None:
    found = attached(http_route(f"{namespace}/cart", parent=MAIN), spec)
    assert found == ([("web", ())] if allowed else "NotAllowedByListeners")


def test_host_names_are_those_of_both() -> None:
    specs = (listener("a", hostname="*.shop.test"), listener("b", hostname="x.test"), listener("c", hostname="cart.shop.test"))
    route = http_route(parent=MAIN, hostnames=("cart.shop.test", "pay.shop.test"))
    assert attached(route, *specs) == [("a", ("cart.shop.test", "pay.shop.test")), ("c", ("cart.shop.test",))]
    assert attached(http_route(parent=MAIN, hostnames=("y.test",)), *specs) == "NoMatchingListenerHostname"


def test_a_listener_that_is_not_accepted_takes_no_route() -> None:
    specs = (listener("a"), listener("b"))
    assert attached(http_route(parent=MAIN), *specs) == [("a", ())]
    assert attached(http_route(parent={**MAIN, "sectionName": "b"}), *specs) == "NoMatchingParent"
    assert attached(http_route(parent=MAIN), listener(protocol="UDP")) == "NotAllowedByListeners"
