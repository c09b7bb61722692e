"""References of routes to Services."""

from __future__ import annotations

import pytest
from manifests import FROM_SHOP, Json, grant, http_route, service, to

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.backends import Target, nowhere, target
from headgate.cluster.translate.conditions import Unmet

GRANT = grant("store/g", FROM_SHOP, {"group": "", "kind": "Service"})


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (to("gone"), "BackendNotFound"),
        (to(port=1), "BackendNotFound"),
        (to(port=None), "BackendNotFound"),
        (to(kind="Pod"), "InvalidKind"),
        (to(group="headgate.dev", kind="GatewayBackend"), "InvalidKind"),
        (to(namespace="store"), "RefNotPermitted"),
        (to("outside"), "UnsupportedValue"),
    ],
)
def test_references_that_lead_nowhere(reference: Json, reason: str) -> None:
    outside = service("shop/outside", type="ExternalName", externalName="example.com")
    snapshot = Snapshot.of([service(), service("store/cart"), outside])
    found = target(snapshot, http_route(), reference)
    assert isinstance(found, Unmet)
    assert found.reason == reason
    assert nowhere(http_route(), reference)["backend"] == f"unresolved/{reference.get('namespace', 'shop')}/{reference['name']}"


def test_a_service_is_reached_by_its_name_in_the_cluster() -> None:
    snapshot = Snapshot.of([service(), service("store/cart"), GRANT])
    form = {"service": {"name": "shop/cart.shop.svc.cluster.local", "port": 8080}}
    assert target(snapshot, http_route(), to()) == Target(form, ObjectKey("shop", "cart"))
    other = target(snapshot, http_route(), to(namespace="store"))
    assert isinstance(other, Target)
    assert other.service == ObjectKey("store", "cart")
