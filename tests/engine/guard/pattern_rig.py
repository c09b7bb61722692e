"""Patterns of RE2, and texts that they may match."""

from __future__ import annotations

import re2
from hypothesis import strategies as st

PATTERNS = (
    r"(?i)blue heron", r"\btok_[a-z0-9]{4,}\b", "secret [a-z]+", "abc", "a|ab|abc", "ab*c", "(?:ab){2,3}", "a{2}", "aa", "[^ ]+@x",
    r"\bsk-[A-Za-z0-9]{20,48}", r"^ab", r"ab$", r"(?m)^ab$", r"\Aab\z", r"\Bb", "", "a*", "(|a)b*", "a*?b", "x{0}b", "b{0,2}c", "(a(b|c)+)+d",
    "[[:upper:]]{2}", "[[:^alpha:]]b", "[]a]+", "[^]a]b", "[a-c-]d", r"[\d\-x]{3}", r"\d{3}-\d{2}", r"\D\d", r"\w+\W", r"\s\S", "é+", "(?i)É",
    "(?i)kiss", "(?i)\u017f", "[é-ü]x", "漢字?", "[^\\x00-\\x7f]{2}", r"\x{6f22}.", r"\x41\101\n", r"\p{Lu}\p{Greek}", r"\pN+", r"\PL\pL", r"\p{^Lu}a",
    r"\Qa.b\E+", r"a\Q*\E", r"\Ca", "(?s)a.b", "a.b", "(?s)a.*b", "a.*b", "(?i:a)b", "(?i)a(?-i)b", "(?P<word>a)b", "(?U)a+", "a{,2}", "a{x",
    "(?:a{9}){9}b", "a{300}", "(?:a?){20}b", "(?i)[^k]", "(?i)[^s]k", ".", "(?s).", "[a-z ]+:", ">a", "<masked>b", "d>.*a", r"\t|\f|\v|\a|\r", "\\.\\*",
)  # fmt: skip

CHARACTERS = "aabbccdxkKsSxyABE -.*:@_<>\n019éÉü\u017f\u212a\u03b1ω漢字\U0001f600"
WORDS = ("ab", "abc", "tok_ab12", "blue heron", "secret plan", "aaaa", "a.b", "kiss", "123-45", "<masked>", "a" * 40, "a*", "a{,2}")
TEXTS = st.lists(st.one_of(st.sampled_from(CHARACTERS), st.sampled_from(WORDS)), max_size=24).map("".join)


def literal(one: str) -> str:
    return one if one in " \n:@_<>-" else re2.escape(one)


ATOMS = st.one_of(
    st.sampled_from(CHARACTERS).map(literal),
    st.sampled_from((".", r"\d", r"\W", r"\w", r"\s", r"\b", r"\B", "^", "$", r"\pL", r"\P{Lu}", "[a-c]", "[^a]", "[^é]", "[\u03b1s]", "[[:^alpha:]]", "(?i:k)",
                     "(?i:s|\u03b1)", "(?i:É)", r"\Qa.\E", r"\x{212a}")),
)  # fmt: skip


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    ends = st.sampled_from(("*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "*?", "+?", "??"))
    return st.one_of(
        st.tuples(inner, ends).map(lambda both: f"(?:{both[0]}){both[1]}"),
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        inner.map(lambda part: f"(?i:{part})"),
        inner.map(lambda part: f"(?s:{part})"),
    )


MADE = st.recursive(ATOMS, larger, max_leaves=6)
ANY_PATTERN = st.one_of(st.sampled_from(PATTERNS), MADE)

