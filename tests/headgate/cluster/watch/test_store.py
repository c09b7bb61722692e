"""What is known of a cluster."""

from __future__ import annotations

import copy

from manifests import Json, http_route, made, service

from headgate.cluster.snapshot import HTTP_ROUTE, NAMESPACE, SERVICE, GroupKind, ObjectKey, key_of
from headgate.cluster.watch.kinds import KINDS, Kept
from headgate.cluster.watch.store import Store

CART = ObjectKey("shop", "cart")


class Watched:
    def __init__(self, selectors: tuple[Json, ...] = ()) -> None:
        self.changes = 0
        self.judged: list[tuple[GroupKind, ObjectKey]] = []
        self.store = Store(KINDS, self._changed, lambda kind, key: self.judged.append((kind, key)), selectors)

    def _changed(self) -> None:
        self.changes += 1


def route(version: str = "1", status: Json | None = None, name: str = "shop/cart", **more: str) -> Kept:
    return Kept(http_route(name, **more), version, status or {})  # type: ignore[arg-type]


def test_a_snapshot_is_of_its_moment() -> None:
    watched = Watched()
    watched.store.apply(HTTP_ROUTE, route())
    before = watched.store.snapshot()
    watched.store.remove(HTTP_ROUTE, CART)
    watched.store.apply(SERVICE, Kept(service(), "2", None))
    after = watched.store.snapshot()
    assert before.find(HTTP_ROUTE, *CART) is not None
    assert before.find(SERVICE, *CART) is None
    assert after.find(HTTP_ROUTE, *CART) is None
    assert after.find(SERVICE, *CART) is not None
    assert watched.changes == 3


def test_kinds_that_do_not_change_are_the_same_mappings() -> None:
    watched = Watched()
    watched.store.apply(HTTP_ROUTE, route())
    before = watched.store.snapshot()
    watched.store.apply(SERVICE, Kept(service(), "2", None))
    after = watched.store.snapshot()
    assert after.kinds[HTTP_ROUTE] is before.kinds[HTTP_ROUTE]
    assert after.kinds[SERVICE] is not before.kinds[SERVICE]


def test_a_status_alone_is_no_change_of_what_is_translated() -> None:
    watched = Watched()
    watched.store.apply(HTTP_ROUTE, route())
    before = watched.store.snapshot()
    watched.store.apply(HTTP_ROUTE, route("2", {"parents": [{}]}))
    assert watched.changes == 1
    assert watched.judged == [(HTTP_ROUTE, CART), (HTTP_ROUTE, CART)]
    watched.store.apply(HTTP_ROUTE, route("2", {"parents": [{}]}))
    assert len(watched.judged) == 2
    assert watched.store.snapshot().find(HTTP_ROUTE, *CART) is before.find(HTTP_ROUTE, *CART)
    stored = watched.store.stored(HTTP_ROUTE, CART)
    assert stored is not None
    assert (stored.version, stored.status) == ("2", {"parents": [{}]})
    assert [one[:2] for one in watched.store.all_stored()] == [(HTTP_ROUTE, CART)]


def test_a_new_list_takes_what_is_gone_away_and_keeps_what_is_the_same() -> None:
    watched = Watched()
    for name in ("shop/cart", "shop/gone"):
        watched.store.apply(HTTP_ROUTE, route(name=name))
    before = watched.store.snapshot()
    watched.store.replace(HTTP_ROUTE, [copy.deepcopy(route()), route(name="shop/new")])
    after = watched.store.snapshot()
    assert sorted(key.name for key in after.kinds[HTTP_ROUTE]) == ["cart", "new"]
    assert after.find(HTTP_ROUTE, *CART) is before.find(HTTP_ROUTE, *CART)
    assert watched.store.stored(HTTP_ROUTE, ObjectKey("shop", "gone")) is None
    changes = watched.changes
    watched.store.replace(HTTP_ROUTE, [route(), route(name="shop/new")])
    assert watched.changes == changes
    assert watched.store.counts()[HTTP_ROUTE] == 2


def test_only_namespaces_that_are_selected_are_looked_at() -> None:
    watched = Watched(({"matchLabels": {"team": "a"}}, {"matchExpressions": [{"key": "all", "operator": "Exists"}]}))
    appeared: list[bool] = []
    watched.store.appeared = lambda: appeared.append(True)

    def space(name: str, **labels: str) -> None:
        found = made("Namespace", name, {}, "v1", labels=labels)
        assert key_of(found).namespace == ""
        watched.store.apply(NAMESPACE, Kept(found, "1", None))

    space("shop", team="a")
    space("store", team="b")
    for name in ("shop/cart", "store/cart"):
        watched.store.apply(HTTP_ROUTE, route(name=name))
    first = watched.store.snapshot()
    assert list(first.kinds[HTTP_ROUTE]) == [CART]
    assert len(first.kinds[NAMESPACE]) == 2
    assert watched.store.snapshot().kinds[HTTP_ROUTE] is first.kinds[HTTP_ROUTE]
    # Nothing is kept of the other, so it has to be listed once it is visible.
    assert watched.store.counts()[HTTP_ROUTE] == 1
    assert len(appeared) == 1
    space("store", all="")
    assert len(appeared) == 2
    watched.store.replace(HTTP_ROUTE, [route(name=name) for name in ("shop/cart", "store/cart", "hidden/cart")])
    assert len(watched.store.snapshot().kinds[HTTP_ROUTE]) == 2
    space("store")
    assert watched.store.counts()[HTTP_ROUTE] == 1
    assert watched.store.stored(HTTP_ROUTE, ObjectKey("store", "cart")) is None
    space("shop")
    assert not watched.store.snapshot().kinds[HTTP_ROUTE]
    assert len(appeared) == 2


def test_an_object_has_the_version_that_it_is_served_as() -> None:
    watched = Watched()
    watched.store.apply(HTTP_ROUTE, route())
    assert watched.store.version_of(HTTP_ROUTE, CART) == "gateway.networking.k8s.io/v1"
    assert watched.store.version_of(HTTP_ROUTE, ObjectKey("shop", "gone")) is None
