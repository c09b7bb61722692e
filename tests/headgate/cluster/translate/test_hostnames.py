"""Host names of routes at listeners."""

from __future__ import annotations

import pytest

from headgate.cluster.translate.hostnames import common, served


@pytest.mark.parametrize(
    ("route", "listener", "both"),
    [
        ("a.test", "a.test", "a.test"),
        ("A.test", "a.TEST", "a.test"),
        ("a.test", "b.test", None),
        ("*.test", "a.test", "a.test"),
        ("a.test", "*.test", "a.test"),
        ("x.a.test", "*.test", "x.a.test"),
        ("*.a.test", "*.test", "*.a.test"),
        ("*.test", "*.a.test", "*.a.test"),
        ("*.a.test", "*.b.test", None),
        ("test", "*.test", None),
        ("*.test", "test", None),
        ("aa.test", "*.a.test", None),
        ("xtest", "*.test", None),
    ],
)
def test_what_two_patterns_have_in_common(route: str, listener: str, both: str | None) -> None:
    assert common(route, listener) == both


def test_a_route_has_what_the_listener_has_of_it() -> None:
    assert served([], "") == ()
    assert served([], "a.test") == ()
    assert served(["b.test", "A.test", "a.test"], "") == ("b.test", "a.test")
    assert served(["a.test", "b.org", "*.b.test"], "*.test") == ("a.test", "*.b.test")
    assert served(["a.org"], "*.test") is None
