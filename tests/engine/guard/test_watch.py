"""The automaton that follows patterns through a text."""

from __future__ import annotations

import random

import effort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.guard.pattern_rig import ANY_PATTERN, TEXTS

from headgate_engine.guard.pattern_syntax import Positions, positions
from headgate_engine.guard.watch import PatternWatch


def watch_of(*patterns: str) -> PatternWatch:
    found = positions(list(patterns))
    assert found is not None
    return PatternWatch(found)


def reference(found: Positions, text: bytes) -> list[tuple[bool, bool]]:
    """The same automaton, position by position."""
    states, alive = [], 0
    for byte in text:
        following = found.first
        for position, follow in enumerate(found.follow):
            if alive >> position & 1:
                following |= follow
        alive = sum(1 << at for at, those in enumerate(found.bytes_of) if following >> at & 1 and those >> byte & 1)
        states.append((alive != 0, alive & found.last != 0))
    return states


@settings(max_examples=effort.examples(400), deadline=None)
@given(patterns=st.lists(ANY_PATTERN, min_size=1, max_size=4), text=TEXTS)
def test_its_states_are_those_of_its_positions(patterns: list[str], text: str) -> None:
    found = positions(patterns)
    assert found is not None
    assert PatternWatch(found).places(text.encode()) == reference(found, text.encode())


def test_many_positions_are_followed() -> None:
    found = positions([f"{chr(97 + n)}{'xyz' * 5}{n}" for n in range(26)])
    assert found is not None
    assert len(found.follow) > 400
    text = b"b" + b"xyz" * 5 + b"1 c" + b"xyz" * 5 + b"1"
    assert PatternWatch(found).places(text) == reference(found, text)


def test_no_more_states_are_kept_than_the_bound_and_none_is_less_than_true() -> None:
    """a and b at random: each suffix of twelve is a state of its own."""
    found = positions(["a[ab]{12}c"])
    assert found is not None
    watch = PatternWatch(found)
    text = bytes(random.Random(1).choices(b"ab", k=20_000)) + b"ccabab"
    told = watch.places(text)
    assert 512 <= watch.state_count <= 520
    for (under_way, ended), (truly, true_end) in zip(told, reference(found, text), strict=True):
        assert under_way or not truly
        assert ended or not true_end
    # It finds back to exact states.
    assert not watch.under_way(text + b"cc")


def test_a_search_may_begin_within_a_text() -> None:
    watch = watch_of("abc")
    assert watch.under_way(b"xxab")
    assert not watch.under_way(b"xxab", 3)
    assert not watch.under_way(b"xxab", 9)
    assert watch.under_way(b"xxab", -1)


def test_odd_positions_are_refused() -> None:
    odd = Positions()
    odd.bytes_of, odd.follow = [0] * 513, [0] * 513
    with pytest.raises(ValueError, match="513 positions"):
        PatternWatch(odd)
    odd.bytes_of, odd.follow = [], [0]
    with pytest.raises(ValueError, match="1 positions"):
        PatternWatch(odd)
    with pytest.raises(TypeError, match="once"):
        PatternWatch.__init__(watch_of("a"), Positions())
    with pytest.raises(TypeError):
        PatternWatch.__new__(PatternWatch).under_way(b"a")
