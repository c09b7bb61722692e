"""Random expressions: ours against the C++ implementation, where cel-python cannot say (see test_against_cel_python.py):
numbers of several types, has(), maps, conversions, texts, times, two-valued logic over errors.

Differences on purpose: a text that is too long or too deep is an error here; what can be no key is not in a map (as in
the Go implementation; an error in C++).
"""

from __future__ import annotations

import datetime
import math
from typing import Any

import effort
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.expr.compile import ExpressionError, compile_expression
from headgate_engine.expr.values import Duration, EvaluationError, Timestamp, Uint

cel = pytest.importorskip("cel_expr_python.cel", reason="no wheel of cel-expr-python for this Python")
strings = pytest.importorskip("cel_expr_python.ext.ext_strings")
maths = pytest.importorskip("cel_expr_python.ext.ext_math")
optionals = pytest.importorskip("cel_expr_python.ext.ext_optional")

FAILED = "failed"
REFUSED = "refused when it is loaded"
BINDINGS: dict[str, Any] = {
    "n": 3, "big": 2**62, "d": 2.5, "s": "abc", "w": "  Añb ", "t": True, "l": [1, 2, 5], "names": ["a", "b"],
    "m": {"a": {"b": 1, "c": None}, "k": "v", "list": [{"x": 1}, {"x": 2}], "n": 3.0}, "y": b"ab", "z": None,
}  # fmt: skip
ENV = cel.NewEnv(
    variables=dict.fromkeys(BINDINGS, cel.Type.DYN),
    extensions=[strings.ExtStrings(), maths.ExtMath(), optionals.ExtOptional()],
)

INTS = st.integers(-9, 9).map(str) | st.sampled_from(
    ["n", "big", "-big", "9223372036854775807", "size(s)", "m.a.b", "l[1]", "l[9]", "m.none", "int('7')", "int(d)"]
)
OTHERS = st.sampled_from(["1u", "7u", "uint(n)", "2.0", "2.5", "d", "m.n", "double(n)", "1e300", "0.0", "double('x')"])
TEXTS = st.sampled_from(
    ["'a'", "'abc'", "s", "w", "''", "m.k", "m['k']", "string(n)", "string(d)", "s + 'é'", "w.trim()", "s.charAt(1)",
     "s.charAt(9)", "w.lowerAscii()", "w.upperAscii()", "s.substring(1)", "s.substring(2, 1)", "s.replace('b', 'xy')",
     "names.join('-')", "string(y)", "m.none", "'a,b,c'.split(',')[1]", "string(true)", "string(2u)"]
)  # fmt: skip
LISTS = st.sampled_from(["l", "[1, 2, 3]", "[]", "[n, 1u, 2.0]", "names", "s.split('b')", "m.list.map(e, e.x)", "l + [9]",
                         "l.filter(e, e > 1)", "[1, 'a', null]"])  # fmt: skip
MAPS = st.sampled_from(["m", "m.a", "{}", "{'a': 1}", "{1: 'a', 2u: 'b'}", "{'x': [1]}", "m.list[0]"])
SCALARS = INTS | OTHERS | TEXTS | st.sampled_from(["null", "z", "true", "y", "b'ab'", "duration('90s')",
                                                   "timestamp('2026-01-02T03:04:05Z')"])  # fmt: skip
ANY = SCALARS | LISTS | MAPS
SUMS = st.recursive(
    INTS | OTHERS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/%"), inner).map(lambda three: f"({' '.join(three)})"),
        inner.map(lambda one: f"(-({one}))"),
        st.tuples(st.sampled_from(["math.greatest", "math.least"]), inner, inner).map(lambda x: f"{x[0]}({x[1]}, {x[2]})"),
        st.tuples(st.sampled_from(["int", "uint", "double", "math.abs", "math.sign"]), inner).map(lambda x: f"{x[0]}({x[1]})"),
    ),
    max_leaves=5,
)
LEAVES = st.one_of(
    st.sampled_from(["true", "false", "t", "has(m.a)", "has(m.a.b)", "has(m.none)", "has(m.a.c)", "has(m.list)", "z",
                     "m.?a.?b.hasValue()", "m.?none.?b.orValue(true)", "type(n) == int", "type(d) == type(1.0)",
                     "y == b'ab'", "size(y) == 2", "'b' in m", "dyn(1) == 1u", "1 == 1.0", "s.matches('^a.c$')",
                     "s.indexOf('c') == 2", "timestamp('2026-01-02T03:04:05Z').getDayOfWeek() == 5",
                     "timestamp('2026-01-02T03:04:05Z') + duration('1h') > timestamp('2026-01-02T04:00:00Z')"]),
    st.tuples(SUMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), SUMS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["<", "==", "!=", ">="]), TEXTS).map(" ".join),
    st.tuples(TEXTS, st.sampled_from(["contains", "startsWith", "endsWith", "matches"]), TEXTS).map(
        lambda x: f"{x[0]}.{x[1]}({x[2]})"),
    st.tuples(ANY, st.sampled_from(["==", "!="]), ANY).map(" ".join),
    st.tuples(SCALARS, LISTS).map(lambda pair: f"{pair[0]} in {pair[1]}"),
    st.tuples(TEXTS | INTS | OTHERS, MAPS).map(lambda pair: f"{pair[0]} in {pair[1]}"),
)  # fmt: skip


def bools(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(children, children)
    return st.one_of(
        two.map(lambda pair: f"({pair[0]} && {pair[1]})"),
        two.map(lambda pair: f"({pair[0]} || {pair[1]})"),
        children.map(lambda one: f"!({one})"),
        st.tuples(children, children, children).map(lambda three: f"({three[0]} ? {three[1]} : {three[2]})"),
        st.tuples(LISTS | MAPS, st.sampled_from(["all", "exists", "exists_one"]), children, LEAVES).map(
            lambda x: f"{x[0]}.{x[1]}(e, e == n || {x[2]} && {x[3]})"
        ),
    )


def plain(value: Any) -> Any:
    """A value of ours as the other one prints it."""
    if type(value) is Uint:
        return value.value
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Timestamp | Duration):
        return str(value)
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def theirs(text: str, *, checked: bool = False) -> Any:
    try:
        found = ENV.compile(text, disable_check=not checked).eval(data=BINDINGS)
        if found.type() == cel.Type.ERROR:
            return FAILED
        value = found.plain_value()
    except Exception:
        return FAILED
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    return value


def ours(text: str) -> Any:
    try:
        return plain(compile_expression(text, open_names=True).evaluate_with(BINDINGS))
    except ExpressionError:
        return REFUSED
    except EvaluationError:
        return FAILED


def same(mine: Any, other: Any) -> bool:
    if isinstance(mine, bool) or isinstance(other, bool) or FAILED in (mine, other):
        return mine is other or (mine == other and type(mine) is type(other))
    return bool(mine == other)


def agree(text: str) -> None:
    mine = ours(text)
    if mine == REFUSED:
        # Types that cannot fit are told at once: then their checker does not let it pass either.
        assert theirs(text, checked=True) == FAILED, text
        return
    other = theirs(text)
    if not isinstance(other, datetime.datetime | datetime.timedelta):
        assert same(mine, other), text


@settings(max_examples=effort.examples(300), deadline=None)
@given(st.recursive(LEAVES, bools, max_leaves=5))
@example("has(m.a) && m.a.b == 1")
@example("!has(m.none) || m.none == 1")
@example("m.none == 1 || true")
@example("l.exists(e, e / 0 > 1) || t")
def test_conditions(text: str) -> None:
    agree(text)


@settings(max_examples=effort.examples(200), deadline=None)
@given(SUMS | TEXTS | LISTS | MAPS)
def test_values(text: str) -> None:
    agree(text)
