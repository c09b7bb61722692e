"""Patterns as automata: they find no less than RE2 does."""

from __future__ import annotations

import effort
import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.guard.pattern_rig import ANY_PATTERN, PATTERNS, TEXTS

from headgate_engine.guard.pattern_syntax import MOST_POSITIONS, positions
from headgate_engine.guard.watch import PatternWatch


def check(pattern: str, text: bytes) -> None:
    """Within every match one is under way, and at its end one may have ended."""
    found = positions([pattern])
    assert found is not None
    places = PatternWatch(found).places(text)
    for match in re2.compile(pattern).finditer(text):
        start, stop = match.span()
        if start < stop:
            assert all(under_way for under_way, _ in places[start:stop])
            assert places[stop - 1][1]


@settings(max_examples=effort.examples(1500), deadline=None)
@given(pattern=ANY_PATTERN, text=TEXTS)
def test_every_match_is_seen(pattern: str, text: str) -> None:
    check(pattern, text.encode())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_patterns_of_the_corpus_are_read(pattern: str) -> None:
    re2.compile(pattern)
    for text in ("ab", "a.b a*b", "AB\nab\nABC kiss Ki\u017f\u017f", "tok_abcd12 sk-" + "x" * 60, "a" * 400 + "b", "漢字 é\u03b1 É9b"):
        check(pattern, text.encode())


# Every character of ASCII against every class, with the case folded and not.
CLASSES = (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", r"\pL", r"\p{Lu}", r"\PL", r"\p{^Ll}", r"\p{Greek}", r"\P{Greek}", r"\pS", r"\pC", "[[:alnum:]]",
           "[[:alpha:]]", "[[:ascii:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:digit:]]", "[[:graph:]]", "[[:lower:]]", "[[:print:]]", "[[:punct:]]",
           "[[:space:]]", "[[:upper:]]", "[[:word:]]", "[[:xdigit:]]", "[[:^word:]]", "[^a-f]", "[^k]", "[^S]", r"[^\W]", r"[^\dk]", "[^é]", "[\u017f]",
           "[\u212a]", "[^\u017f]", "[a-\u212a]", "[\u0100-\u0400]", "[\\x{80}-\\x{10ffff}]", "k", "S", "é", "\u212a", r"\t", r"\x7f", r"\x{e9}", r"\C")  # fmt: skip
OTHERS = "\x80\u00e9\u00c9\u0131\u0130\u017f\u212a\u03b1\u0391\u07ff\u0800\u6f22\ud7ff\ue000\uffff\U00010000\U0010ffff"


@pytest.mark.parametrize("flags", ["", "(?i)", "(?s)", "(?is)"])
@pytest.mark.parametrize("pattern", CLASSES)
def test_a_class_has_all_its_characters(pattern: str, flags: str) -> None:
    compiled = re2.compile(flags + pattern)
    found = positions([flags + pattern])
    assert found is not None
    watch = PatternWatch(found)
    for character in [*map(chr, range(128)), *OTHERS]:
        text = character.encode()
        if compiled.fullmatch(text):
            assert watch.places(text)[-1][1], character


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("abc", b"ab-x"), (r"\btok_[a-z0-9]{4,}\b", b"a plain text, and one more."), (r"\d{3}-\d{2}", b"12-34 1 "), ("[^@ ]+@x", b" "), ("(?i)BlueHeron", b"blue ")],
)
def test_what_cannot_go_on_is_not_under_way(pattern: str, text: bytes) -> None:
    found = positions([pattern])
    assert found is not None
    watch = PatternWatch(found)
    assert not watch.under_way(text)
    assert not any(ended for _, ended in watch.places(text))


@pytest.mark.parametrize("pattern", [r"(?:" * 60 + "a" + ")" * 60, "|".join("a" * 90 for _ in range(9)), "a" * (MOST_POSITIONS + 1), r"\E", r"\x{d800}"])
def test_what_is_not_read_is_none(pattern: str) -> None:
    assert positions(["a", pattern]) is None


@given(st.text("()[]{}|*+?\\^$.-:<>=!iPQExdpL09,a^", max_size=12))
@settings(max_examples=effort.examples(600), deadline=None)
def test_any_text_is_read_or_refused(pattern: str) -> None:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error:
        positions([pattern])
        return
    if positions([pattern]) is not None:
        for text in (b"a0d.x", b"[a]{9}-P", b"\\Q(a)*^E"):
            check(compiled.pattern, text)
