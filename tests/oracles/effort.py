"""How much properties and splits are tried: a part in `make test`, all of it with HEADGATE_EFFORT=long (`make explore`)."""

from __future__ import annotations

import os

LONG = os.environ.get("HEADGATE_EFFORT") == "long"


def examples(count: int) -> int:
    """Return how many examples a property gets: a quarter in the short form, but at least 100."""
    return count if LONG else max(count // 4, min(count, 100))


def steps(count: int, start: int, stride: int = 5) -> range:
    """Return the places below `count` that are tried: every one, or one of `stride`, which differ with `start`."""
    return range(count) if LONG else range(start % stride, count, stride)
