"""ImportNotes and names of translations."""

from __future__ import annotations

import pytest

from headgate.config.foreign.notes import ImportNotes, literal, target_name, variable


def test_notes_are_in_order_and_tell_the_rest() -> None:
    notes = ImportNotes()
    notes.add("a.b", "is odd")
    notes.rest("a", {"b": 1, "c": 2}, {"b"})
    notes.rest("", {"d": 1}, frozenset())
    assert notes.lines == ["a.b: is odd", "a.c: has no counterpart", "d: has no counterpart"]


def test_texts_and_variables() -> None:
    assert literal("a$b") == "a$$b"
    assert variable("A") == "${A}"
    assert variable("A", "") == "${A:-}"
    with pytest.raises(ValueError, match="not a valid name"):
        variable("a-b")


def test_names_of_targets_are_told_apart() -> None:
    taken: set[str] = set()
    assert [target_name(one, taken) for one in ("A b", "a-b", "a.b", "--")] == ["a-b", "a-b-2", "a.b", "server"]
