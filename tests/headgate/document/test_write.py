"""Plain values to YAML."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.document.nodes import plain
from headgate.document.read import read
from headgate.document.write import write

HARD = ["", "no", "on", "~", "null", "0o17", "1e3", "1_000", "0x1F", "12:30", ".5", "<<", "a: b", "# c", "- d", " x ", "é😀",
        "two\nlines\n", "tab\there\nx", "\u2028", "a\r\nb", "${VAR}", "<redacted>", "*a", "&a", "!t", "%x", "@x", "`", "'", '"']  # fmt: skip


@pytest.mark.parametrize("text", HARD)
def test_texts_stay_texts(text: str) -> None:
    assert plain(read(write({"k": text, text or "e": [text]}), "x")) == {"k": text, text or "e": [text]}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs", "Cc"))) | st.sampled_from(HARD),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=("Cs", "Cc"))), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["a", "on", "1", "é"]), VALUES))
def test_what_is_written_is_read_as_the_same(value: dict[str, Any]) -> None:
    assert plain(read(write(value), "x")) == value


def test_order_and_shape_are_those_people_write() -> None:
    assert write({"b": [{"x": 1, "y": "no"}], "a": "l1\nl2\n"}) == "b:\n  - x: 1\n    y: 'no'\na: |\n  l1\n  l2\n"
