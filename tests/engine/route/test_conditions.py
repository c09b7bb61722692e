"""Header and query conditions, through a table with one conditional rule."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.route import matched
from headgate_engine.route.conditions import ConditionTable, ValuePredicate, compile_pattern
from headgate_engine.route.table import RouteRule, RouteTable

Lines = tuple[tuple[str, str], ...]


def holds(*, headers: Lines = (), query: str = "", condition: tuple[str, str, str], in_query: bool = False) -> bool:
    """Ask whether one condition lets GET /p pass."""
    conditions = {"query": (condition,)} if in_query else {"headers": (condition,)}
    table = RouteTable([RouteRule(target=1, **conditions)])  # type: ignore[arg-type]
    return matched(table, "a.test:80", "GET", "/p" + query, headers) is not None


HEADER_CASES: list[tuple[tuple[str, str, str], Lines, bool]] = [
    (("x-a", "exact", "1"), (("X-A", "1"),), True),
    (("X-A", "exact", "1"), (("x-a", "1"),), True),
    (("x-a", "exact", "1"), (("x-a", "2"),), False),
    (("x-a", "exact", "1"), (("x-ab", "1"),), False),
    (("x-a", "exact", ""), (("x-a", ""),), True),
    (("x-a", "exact", ""), (), False),
    # Any line may match; commas do not split a line.
    (("x-a", "exact", "1"), (("x-a", "0"), ("x-b", "2"), ("x-a", "1")), True),
    (("x-a", "exact", "1"), (("x-a", "1"), ("x-a", "0")), True),
    (("x-a", "exact", "1"), (("x-a", "0,1"),), False),
    # Patterns match whole values.
    (("x-a", "regex", "b+"), (("x-a", "bbb"),), True),
    (("x-a", "regex", "b+"), (("x-a", "bbbc"),), False),
    (("x-a", "regex", "b|bc"), (("x-a", "bc"),), True),
    (("x-a", "regex", ".*"), (("x-a", "\udcff"),), True),
    (("x-a", "regex", "[é]"), (("x-a", "é"),), True),
    (("x-a", "regex", ".*"), (), False),
    # Pseudo-headers.
    ((":method", "exact", "GET"), (), True),
    ((":method", "exact", "get"), (), False),
    ((":path", "regex", r"/p\?.*"), (), False),
    ((":path", "exact", "/p"), (), True),
    ((":authority", "exact", "a.test:80"), (), True),
    ((":scheme", "exact", "http"), (), True),
    ((":scheme", "exact", "https"), (), False),
]


@pytest.mark.parametrize(("condition", "headers", "expected"), HEADER_CASES)
def test_a_header_condition_looks_at_whole_lines(
    condition: tuple[str, str, str], headers: Lines, expected: bool
) -> None:
    assert holds(headers=headers, condition=condition) is expected


QUERY_CASES: list[tuple[tuple[str, str, str], str, bool]] = [
    (("q", "exact", "1"), "?q=1", True),
    (("q", "exact", "1"), "?a=2&q=1&b=3", True),
    (("q", "exact", "1"), "?q=1&q=2", False),
    (("q", "exact", "2"), "?q=1&q=2", True),
    (("Q", "exact", "1"), "?q=1", False),
    (("q", "exact", ""), "?q", True),
    (("q", "exact", ""), "?q=", True),
    (("q", "exact", ""), "?&&", False),
    (("q", "exact", ""), "", False),
    (("q", "exact", "1"), "?qq=1", False),
    (("q", "exact", "a b"), "?q=a%20b", True),
    (("q", "exact", "a b"), "?q=a+b", True),
    (("q", "exact", "a+b"), "?q=a%2bb", True),
    (("q r", "exact", "1"), "?q%20r=1", True),
    (("q", "exact", "%zz"), "?q=%zz", True),
    (("q", "exact", "%4"), "?q=%4", True),
    (("q", "exact", "a=b"), "?q=a=b", True),
    (("q", "exact", "é"), "?q=%C3%A9", True),
    (("q", "regex", "[0-9]+"), "?q=12", True),
    (("q", "regex", "[0-9]+"), "?q=12x", False),
    (("q", "regex", "."), "?q=%ff", True),
    (("q", "regex", ".*"), "?r=1", False),
]


@pytest.mark.parametrize(("condition", "query", "expected"), QUERY_CASES)
def test_a_query_condition_looks_at_the_last_decoded_value(
    condition: tuple[str, str, str], query: str, expected: bool
) -> None:
    assert holds(query=query, condition=condition, in_query=True) is expected


@given(st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=8))
def test_any_encoded_parameter_is_found_again(pairs: list[tuple[str, str]]) -> None:
    pairs = [(name, value) for name, value in pairs if "\x00" not in name and not _lone_surrogate(name + value)]
    for name, value in dict(pairs).items():
        assert holds(query="?" + urlencode(pairs), condition=(name, "exact", value), in_query=True)
        assert not holds(query="?" + urlencode(pairs), condition=(name, "exact", value + "x"), in_query=True)


def _lone_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(char) < 0xE000 for char in text)


@pytest.mark.parametrize(
    "text", ["(", "a{1001}", r"(a)\1", "(?=a)", "(?<!a)b", "[b-a]", "((a{500}){500}){9}", "\ud800"]
)
def test_a_pattern_the_linear_engine_cannot_run_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="pattern ") as caught:
        compile_pattern(text)
    assert repr(text) in str(caught.value)


def test_a_pattern_that_makes_backtracking_engines_hang_ends_at_once() -> None:
    assert not holds(headers=(("x-a", "a" * 20_000 + "!"),), condition=("x-a", "regex", "(a+)+"))


def test_unknown_kinds_and_names_are_refused() -> None:
    with pytest.raises(ValueError, match="'prefix' is no kind"):
        ValuePredicate("x-a", "prefix", "1")
    with pytest.raises(ValueError, match="':status' is no pseudo-header"):
        ConditionTable([":status"], [])
    with pytest.raises(ValueError, match=r"1\.\.255"):
        ConditionTable(["x" * 256], [])
    with pytest.raises(ValueError, match=r"1\.\.255"):
        ConditionTable([""], [])


def test_the_scheme_is_that_of_the_table() -> None:
    rule = RouteRule(headers=((":scheme", "exact", "https"),), target=1)
    assert matched(RouteTable([rule]), "a", "GET", "/") is None
    assert matched(RouteTable([rule], scheme="https"), "a", "GET", "/") is rule
