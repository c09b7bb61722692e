"""Services and their endpoints as static discovery."""

from __future__ import annotations

from manifests import endpoints, service

from headgate.cluster.snapshot import ObjectKey, Snapshot
from headgate.cluster.translate.fragments import Json, assembled
from headgate.cluster.translate.services import discovered

CART = ObjectKey("shop", "cart")


def found(*documents: Json, used: tuple[ObjectKey, ...] = (CART,)) -> Json:
    return assembled(discovered(Snapshot.of(documents), used))


def test_a_service_has_its_ports_and_endpoints_their_own() -> None:
    ports = ({"name": "web", "port": 80, "appProtocol": "kubernetes.io/h2c"}, {"name": "dns", "port": 53, "protocol": "UDP"})
    slice_ = endpoints("shop/cart-1", "cart", ["10.0.0.1"], ports=[{"name": "web", "port": 8080}, {"name": "dns", "port": 53}])
    slice_["endpoints"][0] |= {"zone": "a", "nodeName": "n1", "targetRef": {"kind": "Pod", "name": "cart-x"}}
    assert found(service("shop/cart", *ports), slice_) == {
        "services": [
            {
                "name": "cart", "namespace": "shop", "hostname": "cart.shop.svc.cluster.local", "ports": {"80": 80},
                "appProtocols": {"80": "kubernetes.io/h2c"},
            }
        ],
        "workloads": [
            {
                "uid": "pod/shop/cart-x", "name": "cart-x", "namespace": "shop", "workloadIps": ["10.0.0.1"],
                "services": {"shop/cart.shop.svc.cluster.local": {"80": 8080}}, "locality": {"zone": "a"}, "node": "n1",
            }
        ],
    }  # fmt: skip


def test_what_is_not_ready_or_not_of_the_service_is_left_out() -> None:
    mixed = endpoints("shop/cart-1", "cart", ["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    mixed["endpoints"][1]["conditions"] = {"ready": False, "serving": True}
    mixed["endpoints"][2]["conditions"] = {}
    others = [
        endpoints("shop/b", "other", ["10.0.1.1"]), endpoints("edge/c", "cart", ["10.0.1.2"]),
        endpoints("shop/d", "cart", ["cart.test"], addressType="FQDN"), endpoints("shop/e", "cart", ["10.0.1.3"], ports=[{"name": "x", "port": 1}]),
    ]  # fmt: skip
    shown = found(service(), mixed, *others)
    assert [one["workloadIps"] for one in shown["workloads"]] == [["10.0.0.1"], ["10.0.0.3"]]


def test_a_pod_of_two_services_is_one_workload_with_both_addresses() -> None:
    pod = {"targetRef": {"kind": "Pod", "name": "p"}}
    slices = [endpoints("shop/a", "cart", ["10.0.0.1"]), endpoints("shop/b", "pay", ["10.0.0.1"], 81), endpoints("shop/c", "cart", ["fd00::1"], addressType="IPv6")]
    for one in slices:
        one["endpoints"][0] |= pod
    shown = found(service(), service("shop/pay"), *slices, used=(CART, ObjectKey("shop", "pay"), CART))
    assert [one["name"] for one in shown["services"]] == ["cart", "pay"]
    assert shown["workloads"] == [
        {
            "uid": "pod/shop/p", "name": "p", "namespace": "shop", "workloadIps": ["10.0.0.1", "fd00::1"],
            "services": {"shop/cart.shop.svc.cluster.local": {"8080": 80}, "shop/pay.shop.svc.cluster.local": {"8080": 81}},
        }
    ]  # fmt: skip


def test_a_service_that_is_gone_and_one_without_endpoints() -> None:
    assert found(used=(CART,)) == {}
    assert "workloads" not in found(service())
