"""Marks in place of string literals."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_engine.expr.marks import CLOSE, OPEN, mark_literals

# What the engine does by hand. `odd` is what no mark may stand for.
TOKEN = re.compile(
    r"""(?P<text>(?:(?<=\[)|(?<![A-Za-z0-9_\[]))(?!'''|\"\"\")(?:"(?:\\.|[^\\"\n\r])*"|'(?:\\.|[^\\'\n\r])*'))"""
    r"""|(?P<odd>//|["'`])"""
)


def by_pattern(text: str) -> tuple[str, list[str]]:
    tokens: list[str] = []
    odd = OPEN in text

    def mark(found: re.Match[str]) -> str:
        nonlocal odd
        odd = odd or bool(found["odd"])
        if found["odd"] or text[max(found.start() - 1, 0) : found.start()] == "[":
            return found[0]
        tokens.append(found[0])
        return f'"{OPEN}{len(tokens) - 1}{CLOSE}"'

    marked = TOKEN.sub(mark, text)
    return (text, []) if odd else (marked, tokens)


@given(st.lists(st.sampled_from(['"', "'", "\\", "[", "]", "a", "r", "_", "9", " ", "/", "`", "\n", "\r", "\ue000", "é", "=="])))
def test_literals_are_found_as_the_pattern_finds_them(parts: list[str]) -> None:
    text = "".join(parts)
    assert mark_literals(text) == by_pattern(text)


@pytest.mark.parametrize(
    "text", ['r"a" == "b"', "jwt.sub == jwt.iss", 'jwt.sub == "\ue000"', '"a" // b', "`a` == 'b'", '"""a"""', '"a', '"a\\']
)
def test_odd_texts_have_no_marks(text: str) -> None:
    assert mark_literals(text) == (text, [])


def test_a_text_in_brackets_stays() -> None:
    assert mark_literals('jwt["a"] == "b"') == (f'jwt["a"] == "{OPEN}0{CLOSE}"', ['"b"'])
    assert mark_literals("a['b', 'c']") == (f"a['b', \"{OPEN}0{CLOSE}\"]", ["'c'"])


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        mark_literals(None)  # type: ignore[arg-type]
