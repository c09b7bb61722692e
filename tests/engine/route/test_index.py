"""The keyed index against dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.route import longest_prefix
from headgate_engine.route.index import MAX_PROBE, KeyIndex

KEYS = st.tuples(st.integers(0, 3), st.binary(max_size=20))
SEGMENTS = st.lists(st.sampled_from([b"", b"a", b"ab", b"abcdefgh", b"abcdefghi"]), max_size=6)


@given(st.dictionaries(KEYS, st.integers(0, 2**31 - 1), max_size=50), st.lists(KEYS, max_size=20))
def test_a_key_gives_its_value_and_a_stranger_gives_none(
    stored: dict[tuple[int, bytes], int], asked: list[tuple[int, bytes]]
) -> None:
    index = KeyIndex((space, key, value) for (space, key), value in stored.items())
    assert index.size == len(stored)
    for space, key in [*stored, *asked]:
        assert index.get(space, key) == stored.get((space, key), -1)


@given(st.lists(SEGMENTS, max_size=12), SEGMENTS)
def test_the_longest_prefix_ends_at_a_segment_border(stored: list[list[bytes]], path: list[bytes]) -> None:
    keys = sorted({b"/".join([b"", *parts]) for parts in stored} - {b""})
    text = b"/".join([b"", *path])
    index = KeyIndex((7, key, number) for number, key in enumerate(keys))
    covering = [key for key in keys if text == key or text.startswith(key + b"/")]
    expected = keys.index(max(covering, key=len)) if covering else -1
    assert longest_prefix(index, 7, text, [len(key) for key in keys]) == expected
    assert longest_prefix(index, 8, text, [len(key) for key in keys]) == -1


def test_no_key_lies_far_from_its_place_in_a_large_index() -> None:
    index = KeyIndex((0, b"/tenant/%d/v1" % number, number) for number in range(100_000))
    assert index.longest_probe <= MAX_PROBE
    assert index.get(0, b"/tenant/99999/v1") == 99_999
    assert index.get(0, b"/tenant/100000/v1") == -1


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([(0, b"a", 1), (0, b"a", 2)], "twice"),
        ([(0, b"a", -1)], "not in 0"),
        ([(0, b"a", 2**31)], "not in 0"),
    ],
)
def test_what_cannot_be_stored_is_refused(entries: list[tuple[int, bytes, int]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        KeyIndex(entries)


def test_an_index_is_built_once_and_not_used_before() -> None:
    with pytest.raises(TypeError):
        KeyIndex([]).__init__([])  # type: ignore[misc]
    with pytest.raises(TypeError):
        KeyIndex.__new__(KeyIndex).get(0, b"")
