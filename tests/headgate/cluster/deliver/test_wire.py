"""Fragments as resources."""

from __future__ import annotations

import pytest

from headgate.cluster.deliver.wire import part_of, resource_of
from headgate.cluster.translate.fragments import Fragment

FRAGMENT = Fragment(key="k", place="routes", value={"n": "é\n", "l": [1, None, True]}, parent="listener/a", order=(2, "x", ("y", 1)))


def test_a_fragment_comes_back() -> None:
    part = part_of(resource_of(FRAGMENT).payload)
    assert (part.place, part.parent) == ("routes", "listener/a")
    assert part.value == '{"n":"é\\n","l":[1,null,true]}'


def test_orders_of_any_types_can_be_compared() -> None:
    orders = [(), (1,), (1, 2), (1, "a"), ("a",), ("a", 1), (("a", 1),), (None,)]
    parts = [part_of(resource_of(Fragment(key="k", place="p", value={}, order=one)).payload) for one in orders]
    found = sorted(parts, key=lambda one: one.order)
    assert [found.index(one) for one in (parts[0], parts[7], parts[1], parts[2], parts[3], parts[4], parts[5], parts[6])] == [*range(8)]


def test_versions_are_those_of_the_content() -> None:
    again = Fragment(key="other", place="routes", value={"n": "é\n", "l": [1, None, True]}, parent="listener/a", order=(2, "x", ("y", 1)))
    assert resource_of(FRAGMENT) == resource_of(again)
    assert resource_of(FRAGMENT).version == "084f212ba736701c8cef6320"
    assert resource_of(Fragment(key="k", place="routes", value={})).version != resource_of(Fragment(key="k", place="binds", value={})).version


@pytest.mark.parametrize("payload", [b"\xff\xff", b"", b"\x0a\x01a\x1a\x02[]\x22\x02[]", b"\x0a\x01a\x1a\x02{}\x22\x02{}", b"\x0a\x01a\x1a\x02[]\x22\x01{"])
def test_what_is_no_fragment_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):
        part_of(payload)
