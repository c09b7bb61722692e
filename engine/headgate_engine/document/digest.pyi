from collections.abc import Callable, Iterable
from typing import Any

def write_values(
    values: Iterable[object],
    kinds: dict[type, tuple[Callable[[Any], Any], bool]],
    learn: Callable[[type], tuple[Callable[[Any], Any], bool]],
    out: list[str],
) -> None:
    """Append the texts that a digest of `values` is made of to `out`: equal values have equal texts.

    Plain values are written by their repr, tuples in brackets. `kinds` says how values of another class are read: a
    function, and whether it returns the text of a value, or the tuple of its fields. `learn` returns that for a class
    that `kinds` lacks, and raises TypeError for a class that has no place in a digest.
    """
