"""Values and operators against Python's integers and floats."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.expr import operate, py_compare, py_equal
from headgate_engine.expr.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    Duration,
    EvaluationError,
    Redacted,
    Timestamp,
    Uint,
    cel_type,
)

INTS = st.integers(INT_MIN, INT_MAX) | st.sampled_from([INT_MIN, INT_MAX, 0, 1, -1])
UINTS = st.integers(0, UINT_MAX) | st.sampled_from([0, 1, UINT_MAX])


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


@given(INTS, INTS, st.sampled_from("+-*/%"))
def test_ints_are_exact_or_an_error(a: int, b: int, operator: str) -> None:
    exact = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "/": lambda: truncated(a, b),
        "%": lambda: a - b * truncated(a, b),
    }  # fmt: skip
    overflow = operator == "%" and (a, b) == (INT_MIN, -1)
    try:
        wanted = exact[operator]()
    except ZeroDivisionError:
        overflow = True
        wanted = 0
    if overflow or not INT_MIN <= wanted <= INT_MAX:
        with pytest.raises(EvaluationError):
            operate(operator, a, b)
    else:
        assert operate(operator, a, b) == wanted


@given(UINTS, UINTS, st.sampled_from("+-*/%"))
def test_uints_are_exact_or_an_error(a: int, b: int, operator: str) -> None:
    try:
        wanted = {"+": a + b, "-": a - b, "*": a * b}.get(operator, 0) if operator in "+-*" else (
            a // b if operator == "/" else a % b
        )
    except ZeroDivisionError:
        wanted = -1
    if 0 <= wanted <= UINT_MAX:
        found = operate(operator, Uint(a), Uint(b))
        assert type(found) is Uint
        assert found.value == wanted
    else:
        with pytest.raises(EvaluationError):
            operate(operator, Uint(a), Uint(b))


@given(st.floats(), st.floats())
def test_doubles_follow_ieee_754(a: float, b: float) -> None:
    if b:
        wanted = a / b
    elif a == 0 or math.isnan(a):
        wanted = math.nan
    else:
        wanted = math.copysign(math.inf, a) * math.copysign(1, b)
    found = operate("/", a, b)
    assert found == wanted or (math.isnan(found) and math.isnan(wanted))
    assert py_compare(a, b) == (2 if math.isnan(a) or math.isnan(b) else (a > b) - (a < b))


@given(INTS, UINTS)
def test_numbers_compare_across_their_types(a: int, b: int) -> None:
    assert py_equal(a, Uint(b)) == (a == b)
    assert py_compare(a, Uint(b)) == (a > b) - (a < b)
    assert not py_equal(True, 1)
    assert not py_equal(1, True)


@pytest.mark.parametrize(("a", "b"), [(1, 1.0), (1, Uint(1)), ("a", 1), (True, 1), ([], {}), (None, 1)])
def test_arithmetic_does_not_mix_types(a: object, b: object) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        operate("+", a, b)


MEMBERS = [
    (1, [1.0], True), (1, [True], False), ("a", {"a": 1}, True), (1, {1: 0}, True), (1.0, {1: 0}, True),
    (True, {1: 0}, False), (1, {True: 0}, False), (True, {True: 0}, True), (Uint(1), {1: 0}, True), ([1], [[1]], True),
]  # fmt: skip


@pytest.mark.parametrize(("item", "holder", "found"), MEMBERS)
def test_membership(item: object, holder: object, found: bool) -> None:
    assert operate("in", item, holder) is found


def test_credentials_compare_and_do_not_show() -> None:
    secret = Redacted(b"token")
    assert py_equal(secret, "token")
    assert not py_equal(secret, "other")
    assert "token" not in f"{secret!r} {secret}"
    assert cel_type(secret).name == "string"


def test_times_add_up() -> None:
    assert operate("+", Timestamp(5), Duration(7)) == Timestamp(12)
    assert operate("-", Timestamp(5), Timestamp(7)) == Duration(-2)
    with pytest.raises(EvaluationError):
        operate("+", Timestamp(253_402_300_799 * 10**9), Duration(10**9))
