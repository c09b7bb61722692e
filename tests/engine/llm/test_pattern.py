"""Patterns of model names, and what two of them have in common."""

from __future__ import annotations

import itertools

import pytest

from headgate_drivers.llm import common_pattern
from headgate_engine.llm.pattern import ModelPattern

NAMES = ["".join(one) for n in range(1, 5) for one in itertools.product("ab", repeat=n)]
PATTERNS = ["*", "a*", "ab*", "b*", "*a", "*ab", "*b", "a", "ab", "abab"]

COMMON = [
    ("*", "*", "*"),
    ("*", "gpt-*", "gpt-*"),
    ("*", "*-mini", "*-mini"),
    ("*", "gpt-5", "gpt-5"),
    ("acme/*", "acme/big-*", "acme/big-*"),
    ("acme/*", "acme/*", "acme/*"),
    ("acme/*", "acme/big", "acme/big"),
    ("gpt-5*", "gpt-5", "gpt-5"),
    ("acme/*", "other/*", None),
    ("acme/*", "other/big", None),
    ("*-mini", "*-4-mini", "*-4-mini"),
    ("*-mini", "*-max", None),
    ("gpt-*", "*-mini", "gpt-*-mini"),
    ("gpt-5", "gpt-5", "gpt-5"),
    ("gpt-5", "gpt-4", None),
]


@pytest.mark.parametrize(("one", "other", "common"), COMMON)
def test_what_two_patterns_have_in_common(one: str, other: str, common: str | None) -> None:
    assert common_pattern(ModelPattern(one), ModelPattern(other)) == common
    assert common_pattern(ModelPattern(other), ModelPattern(one)) == common


def fits(pattern: str, name: str) -> bool:
    """The meaning of a pattern with one star anywhere."""
    start, star, end = pattern.partition("*")
    if not star:
        return name == pattern
    return len(name) >= len(start) + len(end) and name.startswith(start) and name.endswith(end)


@pytest.mark.parametrize(("one", "other"), [*itertools.product(PATTERNS, PATTERNS)])
def test_names_of_the_common_pattern_fit_both(one: str, other: str) -> None:
    first, second = ModelPattern(one), ModelPattern(other)
    common = common_pattern(first, second)
    both = {name for name in NAMES if first.matches(name) and second.matches(name)}
    assert both == {name for name in NAMES if fits(one, name) and fits(other, name)}
    named = {name for name in NAMES if common is not None and fits(common, name)}
    assert named <= both
    # A start and an end that share letters are not told: `aab` of `aa*` and `*ab`.
    assert {name for name in both - named if len(name) >= len(one) + len(other) - 2} == set()


@pytest.mark.parametrize("text", ["", "a*b", "**", "*a*", "a**"])
def test_a_pattern_has_one_star_at_an_end(text: str) -> None:
    with pytest.raises(ValueError, match="model"):
        ModelPattern(text)
