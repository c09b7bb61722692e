"""References of routes to Services."""

from __future__ import annotations

import pytest
from manifests import FROM_SHOP, Json, gateway_backend, grant, http_route, own, service, to

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
        (own("gone"), "BackendNotFound"),
        (own("broken"), "Invalid"),
        (own("away", namespace="store"), "RefNotPermitted"),
        (to(namespace="store"), "RefNotPermitted"),
        (to("outside"), "UnsupportedValue"),
    ],
)
def test_references_that_lead_nowhere(reference: Json, reason: str) -> None:
    outside = service("shop/outside", type="ExternalName", externalName="example.com")
    snapshot = Snapshot.of([service(), service("store/cart"), outside, gateway_backend("shop/broken", ai={"provider": {"azureopenai": {"endpoint": "x"}}})])
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


@pytest.mark.parametrize(
    ("spec", "form", "says"),
    [
        ({"static": {"host": "a.test", "port": 80}}, {"backend": "shop/away"}, False),
        ({"static": {"host": "a.test", "port": 80}, "policies": {"http": {"version": "HTTP1"}}}, {"backend": "shop/away"}, True),
        ({"ai": {"provider": {"openai": {}}}}, {"backend": "shop/away"}, True),
        ({"dynamicForwardProxy": {"allowedPorts": [80]}}, {"backend": "shop/away"}, False),
    ],
)
def test_own_backends_are_named(spec: Json, form: Json, says: bool) -> None:
    snapshot = Snapshot.of([gateway_backend(**spec)])
    assert target(snapshot, http_route(), own("away")) == Target(
        form, says_protocol=says, backend=ObjectKey("shop", "away"), rewritable="static" in spec,
        dynamic="dynamicForwardProxy" in spec,
    )


def test_a_grant_lets_routes_refer_to_backends_of_another_namespace() -> None:
    allowed = grant("store/b", FROM_SHOP, {"group": "headgate.dev", "kind": "GatewayBackend"})
    snapshot = Snapshot.of([gateway_backend("store/away"), allowed])
    found = target(snapshot, http_route(), own("away", namespace="store"))
    assert isinstance(found, Target)
    assert found.form == {"backend": "store/away"}
