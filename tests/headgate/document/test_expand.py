"""Environment references in texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.document.expand import expand

ENVIRON = {"A": "one", "B_2": "two", "EMPTY": "", "DOLLAR": "$A"}

CASES = [
    ("${A}", "one"),
    ("$A", "one"),
    ("x${A}y$B_2", "xoneytwo"),
    ("${A}${B_2}", "onetwo"),
    ("$$A", "$A"),
    ("$${A}", "${A}"),
    ("$$", "$"),
    ("^/v1$", "^/v1$"),
    ("a$|b$)", "a$|b$)"),
    ("$1 ${1} ${} ${A", "$1 ${1} ${} ${A"),
    ("${EMPTY}", ""),
    ("${NONE:-d}", "d"),
    ("${NONE:-}", ""),
    ("${EMPTY:-d}", "d"),
    ("${A:-d}", "one"),
    ("${NONE:-http://h:1/a-b}", "http://h:1/a-b"),
    ("${DOLLAR}", "$A"),
    ("${A-x}", "${A-x}"),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_references_are_replaced_and_other_dollars_stay(text: str, expected: str) -> None:
    found = expand(text, ENVIRON)
    assert found.text == expected
    assert not found.missing


def test_every_unset_variable_is_named() -> None:
    assert expand("$NO ${NOT} ${A}", ENVIRON).missing == ("NO", "NOT")


@pytest.mark.parametrize(
    ("text", "whole"),
    [("${A}", True), ("$A", True), ("${N:-5}", True), ("$$", False), (" ${A}", False), ("a", False)],
)
def test_only_a_text_that_is_one_reference_is_whole(text: str, whole: bool) -> None:
    assert expand(text, ENVIRON).whole is whole


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_a_text_without_dollars_stays(text: str) -> None:
    assert expand(text, ENVIRON).text == text


@given(st.text())
def test_doubling_every_dollar_keeps_any_text(text: str) -> None:
    found = expand(text.replace("$", "$$"), {})
    assert found.text == text
    assert not found.missing
