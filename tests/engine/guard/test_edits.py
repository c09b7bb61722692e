"""Edits on top of edits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.guard.edits import apply_edits, compose_edits

EDITS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3), st.sampled_from([b"", b"X", b"YZ", b"<masked>"])), max_size=5)


def laid_out(text: bytes, steps: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes, int]]:
    found, at = [], 0
    for gap, size, token in steps:
        start, stop = at + gap, at + gap + size
        if stop > len(text):
            break
        found.append((start, stop, token, 0))
        at = stop
    return found


@given(st.binary(min_size=0, max_size=30), EDITS, EDITS)
def test_composed_edits_do_what_both_do_in_turn(text: bytes, one, two) -> None:
    first = laid_out(text, one)
    middle = apply_edits(text, first)
    second = laid_out(middle, two)
    composed = compose_edits(first, second)
    assert apply_edits(text, composed) == apply_edits(middle, second)
    assert composed == sorted(composed, key=lambda edit: edit[:2])
