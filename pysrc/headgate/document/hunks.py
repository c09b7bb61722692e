"""Where two long sequences differ, found at the speed of C as long as most of them is equal.

Sequences of one length are compared place by place; of others, what lies between their common beginning and their
common end is one hunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq
from typing import Any, NamedTuple


class Hunk(NamedTuple):
    """Items `i1` to `i2` (exclusive) of the first sequence, and what stands for them in the second."""

    i1: int
    i2: int
    j1: int
    j2: int


def hunks(
    before: Sequence[Any], after: Sequence[Any], same: Callable[[Any, Any], object] = eq
) -> list[Hunk]:
    """Return what changed, in order; `same` compares two items (`operator.is_` where objects are shared)."""
    if len(before) == len(after):
        return _by_place(list(map(same, before, after)))
    start = _first_difference(before, after, same)
    most = min(len(before), len(after)) - start
    end = _first_difference(before[: -most - 1 : -1], after[: -most - 1 : -1], same) if most else 0
    return [Hunk(start, len(before) - end, start, len(after) - end)]


def _by_place(equal: list[object]) -> list[Hunk]:
    found: list[Hunk] = []
    at, size = 0, len(equal)
    while True:
        try:
            at = equal.index(False, at)
        except ValueError:
            return found
        start = at
        while at < size and not equal[at]:
            at += 1
        found.append(Hunk(start, at, start, at))


def _first_difference(one: Sequence[Any], other: Sequence[Any], same: Callable[[Any, Any], object]) -> int:
    equal = list(map(same, one, other))
    try:
        return equal.index(False)
    except ValueError:
        return len(equal)
