"""Several patterns that are looked for in one search."""

from __future__ import annotations

from typing import Any

import pytest
import re2

from headgate_engine.guard import pattern_set
from headgate_engine.guard.pattern_set import MOST_INSTRUCTIONS, PatternSet, groups

MEMORY = 8 << 20


def set_of(*texts: str, memory: int = MEMORY) -> PatternSet:
    return PatternSet(list(texts), [re2.compile(text) for text in texts], memory)


def test_those_that_match_are_told_in_their_order() -> None:
    found = set_of("b+", "c", "a?", "ab")
    assert found.suspects(b"xabc") == [0, 1, 2, 3]
    assert found.suspects(b"cx") == [1, 2]
    assert set_of("b", "c").suspects(b"a") == []


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([5], [[0]]),
        ([4_000, 4_000, 1], [[0, 1], [2]]),
        ([9_000, 1, 2], [[0], [1, 2]]),
        ([1, 9_000, 2], [[0], [1], [2]]),
        ([7_999, 1, 8_000], [[0, 1], [2]]),
    ],
)
def test_no_set_is_larger_than_it_may_be(sizes: list[int], expected: list[list[int]]) -> None:
    assert groups(sizes) == expected


def test_many_patterns_are_several_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    made = pattern_set.made

    def noted(texts: list[str], memory: int) -> Any:
        sizes.append(sum(re2.compile(text).programsize for text in texts))
        return made(texts, memory)

    monkeypatch.setattr(pattern_set, "made", noted)
    found = set_of(*(f"{letter}[a-z0-9]{{20,200}}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert len(sizes) > 1
    assert max(sizes) <= MOST_INSTRUCTIONS
    assert found.suspects(b"b" + b"1" * 20 + b" z" + b"0" * 20) == [1, 25]


def test_what_no_set_covers_may_always_match() -> None:
    large = r"\p{L}{3,20}"
    assert set_of("b", "c", large, "d").suspects(b"..d") == [2, 3]
    # The patterns fit together, but not into this memory.
    assert set_of("[a-z]{1,500}", "[0-9]{1,500}", memory=20_000).suspects(b"-") == [0, 1]
