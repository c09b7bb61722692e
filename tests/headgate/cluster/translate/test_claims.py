"""Host names that belong to routes of one kind."""

from __future__ import annotations

import pytest
from manifests import grpc_route, http_route, listener

from headgate.cluster.translate.claims import Claims
from headgate.cluster.translate.conditions import Unmet
from headgate.cluster.translate.listeners import ListenerState
from headgate.cluster.translate.parents import Attachment


def at(*hostnames: str, name: str = "web", host: str | None = None) -> Attachment:
    return Attachment(ListenerState(listener(name, hostname=host)), hostnames)


@pytest.mark.parametrize(
    ("older", "newer", "shared"),
    [
        (("a.test",), ("a.test",), True),
        (("a.test",), ("b.test",), False),
        (("a.test", "b.test"), ("c.test", "b.test"), True),
        (("*.test",), ("a.test",), True),
        (("*.test",), ("b.a.test",), True),
        (("*.test",), ("test",), False),
        (("*.a.test",), ("a.test",), False),
        (("*.a.test",), ("*.test",), True),
        (("*.a.test",), ("*.b.a.test",), True),
        (("*.a.test",), ("*.b.test",), False),
        (("*.a.test",), ("*.a.test",), True),
        (("x.a.test",), (), True),
        ((), (), True),
    ],
)
def test_kinds_share_no_host_name(older: tuple[str, ...], newer: tuple[str, ...], shared: bool) -> None:
    for first, second in ((older, newer), (newer, older)):
        claims = Claims()
        claims.hold(http_route("shop/old"), [at(*first)])
        found = claims.left(grpc_route("shop/new"), [at(*second)])
        assert isinstance(found, Unmet) is shared
        if isinstance(found, Unmet):
            assert found.reason == "HostnameConflict"
            assert "listener web has host names of the route for shop/old already" in found.message
        # Routes of one kind may share any.
        assert claims.left(http_route("shop/new"), [at(*second)]) == [at(*second)]


def test_a_route_without_host_names_has_those_of_the_listener() -> None:
    claims = Claims()
    claims.hold(grpc_route(), [at(host="a.test")])
    assert claims.left(http_route(), [at("b.test")]) == [at("b.test")]
    assert isinstance(claims.left(http_route(), [at("a.test")]), Unmet)


def test_other_listeners_keep_the_route() -> None:
    claims = Claims()
    claims.hold(http_route(), [at(name="a")])
    assert claims.left(grpc_route(), [at(name="a"), at(name="b")]) == [at(name="b")]


def test_nothing_is_held_before_a_route_is_accepted() -> None:
    claims = Claims()
    assert claims.left(http_route(), [at()]) == [at()]
    assert claims.left(grpc_route(), [at()]) == [at()]
