"""ReferenceGrants."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import FROM_SHOP, grant

from headgate.cluster.snapshot import HTTP_ROUTE, SECRET, SERVICE, ObjectKey, Snapshot
from headgate.cluster.translate.grants import permitted

CART = ObjectKey("store", "cart")
SERVICES = {"group": "", "kind": "Service"}


@pytest.mark.parametrize(
    ("where", "origin", "target", "lets"),
    [
        ("store/g", FROM_SHOP, SERVICES, True),
        ("store/g", FROM_SHOP, {**SERVICES, "name": "cart"}, True),
        ("store/g", FROM_SHOP, {**SERVICES, "name": "other"}, False),
        ("store/g", FROM_SHOP, {"group": "", "kind": "Secret"}, False),
        ("store/g", {**FROM_SHOP, "namespace": "other"}, SERVICES, False),
        ("store/g", {**FROM_SHOP, "kind": "GRPCRoute"}, SERVICES, False),
        ("store/g", {**FROM_SHOP, "group": ""}, SERVICES, False),
        ("shop/g", FROM_SHOP, SERVICES, False),
    ],
)
def test_a_grant_of_the_target_s_namespace_lets_references_in(
    where: str, origin: dict[str, Any], target: dict[str, Any], lets: bool
) -> None:
    snapshot = Snapshot.of([grant(where, origin, target)])
    assert permitted(snapshot, HTTP_ROUTE, "shop", SERVICE, CART) is lets


def test_within_a_namespace_nothing_is_asked_for() -> None:
    assert permitted(Snapshot.of([]), HTTP_ROUTE, "store", SECRET, CART)
    assert not permitted(Snapshot.of([]), HTTP_ROUTE, "shop", SECRET, CART)
