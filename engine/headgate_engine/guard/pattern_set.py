"""Tells which of several patterns a text may match, with one search for many of them.

RE2 compiles a set while it holds the interpreter's lock. So patterns are put together up to a size of which one set
takes 3 ms at most, and one that is larger is left to whoever searches it by itself.
"""

from __future__ import annotations

from typing import Any

# Instructions of the patterns of a set together. RE2 takes 0.3 us for each.
MOST_INSTRUCTIONS = 8_000


class PatternSet:
    """Patterns by their place in the list. `compiled`: the same ones, each by itself; `memory`: bytes, for each set."""

    def __init__(self, texts: list[str], compiled: list[Any], memory: int) -> None:
        # Patterns that no set covers.
        self._always: list[int] = []
        self._sets: list[tuple[Any, list[int]]] = []
        for places in groups([one.programsize for one in compiled]):
            found = made([texts[place] for place in places], memory) if len(places) > 1 else None
            if found is None:
                self._always += places
            else:
                self._sets.append((found, places))

    def suspects(self, text: bytes) -> list[int]:
        """Return the places of the patterns that may match, ascending: those of sets do, if only the empty string."""
        found = self._always.copy()
        for one, places in self._sets:
            found += [places[index] for index in one.Match(text) or ()]
        return sorted(found)


def groups(sizes: list[int]) -> list[list[int]]:
    """Return the places of `sizes` in groups that are not larger than a set may be, if they have several members."""
    found: list[list[int]] = []
    total = 0
    for place, size in enumerate(sizes):
        if not found or total + size > MOST_INSTRUCTIONS:
            found.append([])
            total = 0
        found[-1].append(place)
        total += size
    return found


def made(texts: list[str], memory: int) -> Any | None:
    """Return the set of RE2; None if it does not fit into `memory`."""
    import re2  # 2.5 MB: loaded with the first pattern

    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    found = re2.Set.SearchSet(options)
    for text in texts:
        found.Add(text)
    try:
        found.Compile()
    except re2.error:
        return None
    return found
