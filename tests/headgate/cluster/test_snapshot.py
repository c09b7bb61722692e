"""What was read of a cluster."""

from __future__ import annotations

import random

from manifests import http_route, made, service

from headgate.cluster.snapshot import HTTP_ROUTE, SERVICE, GroupKind, ObjectKey, Snapshot, kind_of


def test_objects_are_found_by_kind_namespace_and_name() -> None:
    snapshot = Snapshot.of([service(), http_route()])
    assert snapshot.find(SERVICE, "shop", "cart") == service()
    assert snapshot.find(SERVICE, "edge", "cart") is None
    assert snapshot.find(GroupKind("", "Pod"), "shop", "cart") is None
    assert kind_of(made("HTTPRoute", "a", {}, "gateway.networking.k8s.io/v1beta1")) == HTTP_ROUTE
    assert str(ObjectKey("shop", "cart")) == "shop/cart"


def test_the_oldest_comes_first_and_then_names_decide() -> None:
    documents = [
        http_route("b/a", creationTimestamp="2026-01-02T00:00:00Z"), http_route("b/b"), http_route("a/z"), http_route("a/y"),
    ]  # fmt: skip
    for seed in range(5):
        random.Random(seed).shuffle(documents)
        found = [one["metadata"] for one in Snapshot.of(documents).oldest_first(HTTP_ROUTE)]
        assert [f"{one['namespace']}/{one['name']}" for one in found] == ["a/y", "a/z", "b/b", "b/a"]


def test_a_namespace_has_its_name_as_a_label_always() -> None:
    assert Snapshot.of([]).labels_of_namespace("shop") == {"kubernetes.io/metadata.name": "shop"}
    snapshot = Snapshot.of([made("Namespace", "shop", {}, "v1", labels={"team": "a"})])
    assert snapshot.labels_of_namespace("shop") == {"kubernetes.io/metadata.name": "shop", "team": "a"}
