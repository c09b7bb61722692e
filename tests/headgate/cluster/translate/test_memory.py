"""Translations that remember: the same as those that do not, for less."""

from __future__ import annotations

import copy
import random

import pytest
from certificates_rig import secret
from manifests import (
    FROM_SHOP,
    Json,
    endpoints,
    gateway,
    gateway_backend,
    gateway_class,
    grant,
    grpc_route,
    http_route,
    listener,
    made,
    own,
    service,
    to,
)

from headgate.cluster.snapshot import HTTP_ROUTE, ObjectIndex, ObjectKey, Snapshot, key_of, kind_of
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.deployed import Placed, Placement
from headgate.cluster.translate.everything import World, everything
from headgate.cluster.translate.gateway import Acknowledged
from headgate.cluster.translate.memory import TranslationMemory

TLS = {"tls": {"certificateRefs": [{"name": "tls"}]}}
TARGET = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "cart"}
MAIN = {"name": "main", "namespace": "edge"}
INNER = {"name": "inner", "namespace": "edge"}
CLUSTER = [
    gateway_class(), secret(), made("Namespace", "shop", {}, "v1", labels={"team": "a"}),
    gateway(listener(), listener("tls", 443, "HTTPS", hostname="*.shop.test", **TLS)), gateway(listener("in", 8080), name="edge/inner"),
    http_route("shop/cart", {"backendRefs": [to(), to("pay", weight=2)]}, hostnames=("cart.shop.test",)),
    http_route("shop/far", {"backendRefs": [to("far", namespace="store")]}, {}),
    http_route("shop/inner", parent=INNER), http_route("shop/model", {"backendRefs": [own("model")]}),
    grpc_route("shop/calls", {"backendRefs": [to()]}, hostnames=("calls.shop.test",)),
    gateway_backend("shop/model", ai={"provider": {"openai": {}}}), service(), service("shop/pay"), service("store/far"),
    grant("store/g", FROM_SHOP, {"group": "", "kind": "Service"}),
    endpoints("shop/cart-1", "cart", ["10.0.0.1", "10.0.0.2"]), endpoints("shop/pay-1", "pay", ["10.0.0.3"]),
    made("GatewayPolicy", "shop/slow", {"targetRefs": [TARGET], "traffic": {"timeouts": {"request": "3s"}}}, "headgate.dev/v1alpha1"),
    made("GatewayPolicy", "shop/some", {"targetSelectors": [{"group": TARGET["group"], "kind": "HTTPRoute", "matchLabels": {"a": "b"}}],
                                        "traffic": {"timeouts": {"request": "4s"}}}, "headgate.dev/v1alpha1"),
]  # fmt: skip
BOTH = http_route("shop/both")
BOTH["spec"]["parentRefs"] = [INNER, MAIN]
# Other forms of objects, which are put in their place.
OTHERS = [
    BOTH, http_route("shop/cart", {"backendRefs": [to("gone")]}), http_route("shop/cart", labels={"a": "b"}), http_route("shop/cart", parent=INNER),
    http_route("shop/inner", parent=MAIN, hostnames=("calls.shop.test",), creationTimestamp="2025-01-01T00:00:00Z"),
    gateway(listener(), listener("more", 81)), gateway(listener("in", 8080, "TCP"), name="edge/inner"), gateway_class(controller="other.test/x"),
    made("Namespace", "shop", {}, "v1"), service("shop/cart", {"port": 9090}), endpoints("shop/cart-1", "cart", ["10.0.0.9"]),
    endpoints("shop/cart-1", "pay", ["10.0.0.9"]), gateway_backend("shop/model"), made("Secret", "edge/tls", {}, "v1"),
    made("GatewayPolicy", "shop/slow", {"targetRefs": [{**TARGET, "name": "gone"}], "traffic": {"timeouts": {"request": "5s"}}}, "headgate.dev/v1alpha1"),
    endpoints("shop/cart-2", "cart", ["10.0.0.4"]), http_route("shop/new", {"backendRefs": [to()]}), service("shop/new"),
]  # fmt: skip


def flat(world: World) -> tuple[object, object]:
    return world.gateways, sorted((str(one.kind), str(one.key), one.content) for one in world.statuses)


class Changing:
    """Snapshots of a cluster that changes, whose kinds stay the same mappings where nothing has changed."""

    def __init__(self, documents: list[Json]) -> None:
        self.kinds = {kind: dict(found) for kind, found in Snapshot.of(documents).kinds.items()}

    def put(self, document: Json) -> Snapshot:
        kind = kind_of(document)
        self.kinds[kind] = {**self.kinds.get(kind, {}), key_of(document): document}
        return self.now()

    def take(self, document: Json) -> Snapshot:
        kind = kind_of(document)
        self.kinds[kind] = {key: one for key, one in self.kinds.get(kind, {}).items() if key != key_of(document)}
        return self.now()

    def now(self) -> Snapshot:
        return Snapshot(dict(self.kinds))


@pytest.mark.parametrize("seed", range(12))
def test_after_any_changes_it_is_as_if_all_were_translated(seed: int) -> None:
    chance = random.Random(seed)
    cluster, memory = Changing(CLUSTER), TranslationMemory()
    said: dict[ObjectKey, Acknowledged] = {}
    there: dict[ObjectKey, Placed] | None = None
    for turn in range(60):
        for _ in range(chance.choice((1, 1, 1, 3, 8))):
            document = copy.deepcopy(chance.choice(CLUSTER + OTHERS))
            if chance.random() < 0.35:
                cluster.take(document)
            else:
                cluster.put(document)
        key = ObjectKey("edge", chance.choice(("main", "inner")))
        if chance.random() < 0.2:
            said[key] = Acknowledged(chance.choice((0, 1)), chance.choice(("", "no")))
        if chance.random() < 0.2:
            refusal = chance.choice((None, Unmet("InvalidParameters", "no")))
            there = {**(there or {}), key: Placement(({"value": "127.0.0.1"},), refusal, chance.choice(("Accepted", "Programmed")))}
        snapshot = cluster.now()
        assert flat(memory.translate(snapshot, said, there)) == flat(everything(snapshot, said, there)), (seed, turn)


def test_a_changed_route_is_translated_and_no_other() -> None:
    routes = [http_route(f"shop/r{number}", {"backendRefs": [to()]}, hostnames=(f"r{number}.test",)) for number in range(50)]
    cluster, memory = Changing([*CLUSTER, *routes]), TranslationMemory()
    before = memory.translate(cluster.now(), {})
    assert memory.computed > 60
    after = memory.translate(cluster.put(http_route("shop/r7", {"backendRefs": [to("pay")]}, hostnames=("r7.test",))), {})
    # The root, the Gateway, the route and where it is attached, what the Gateway reaches, its file; and the policies, one
    # of which selects routes.
    assert memory.computed <= 7
    inner, main = ObjectKey("edge", "inner"), ObjectKey("edge", "main")
    assert after.gateways[inner] is before.gateways[inner]
    known = {one.key: one for one in before.gateways[main]}
    assert [one.key for one in after.gateways[main] if known.get(one.key) is not one and one.place == "routes"] == [
        "route/shop/r7.00.web"
    ]


def test_changed_endpoints_touch_no_route() -> None:
    cluster, memory = Changing(CLUSTER), TranslationMemory()
    before = memory.translate(cluster.now(), {})
    after = memory.translate(cluster.put(endpoints("shop/pay-1", "pay", ["10.0.0.8"])), {})
    # The root, the file of the Gateway, and its services.
    assert memory.computed == 3
    assert after.gateways != before.gateways
    assert after.statuses == before.statuses
    memory.translate(cluster.now(), {})
    assert memory.computed == 1


def test_what_nothing_asks_for_any_more_is_forgotten() -> None:
    cluster, memory = Changing(CLUSTER), TranslationMemory()
    memory.translate(cluster.now(), {})
    for one in CLUSTER:
        cluster.take(one)
    memory.translate(cluster.now(), {})
    kinds = {read[0] for read in memory._readers}
    assert not any(isinstance(one, ObjectIndex) for one in kinds)
    assert (HTTP_ROUTE, ObjectKey("shop", "cart")) not in memory._readers


def test_a_failure_leaves_nothing_half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, memory = Changing(CLUSTER), TranslationMemory()
    memory.translate(cluster.now(), {})
    snapshot = cluster.put(http_route("shop/cart", {"backendRefs": [{"port": 1}]}))
    with pytest.raises(KeyError):
        memory.translate(snapshot, {})
    snapshot = cluster.put(CLUSTER[5])
    assert flat(memory.translate(snapshot, {})) == flat(everything(snapshot, {}))
