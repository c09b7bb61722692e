"""What macros cost: work and memory follow the sizes of values, and parts that do not change are evaluated once."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.expr.values import EvaluationError

LONG = "a" * 50_000


def asked(name: str = "x-long", value: str = LONG) -> RequestContext:
    return make_context("GET", "/", "a.test", [(name, value)])


@pytest.mark.parametrize(
    "text",
    [
        "h.split('').map(c, h.split(c))",
        "h.split('').map(c, h + c)",
        "h.split('').map(c, h.replace(c, 'b'))",
        "h.split('').exists(c, h.contains(c + 'b'))",
        "h.split('').map(c, [h.split(''), c])",
        "h.split('').map(c, toJson([h, c]))",
        "h.split('').with(l, l.map(c, l + [c]))",
        "h.split('').with(l, l.all(c, l == l))",
        "h.split('').with(l, l.exists(c, [c, 'b'] in [l]))",
    ],
)
def test_values_are_charged_by_their_size(text: str) -> None:
    program = compile_expression(text, open_names=True)
    tracemalloc.start()
    try:
        with pytest.raises(EvaluationError, match="takes too many steps"):
            program.evaluate_with({"h": LONG})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a', 'b'].all(c, request.headers['x-long'].contains('a'))", True),
        ("request.headers['x-long'].split('').map(c, request.headers['x-long'])[49999].size()", 50_000),
        ("[1, 2, 3].map(n, n + size(request.headers['x-long']) - 50000)", [1, 2, 3]),
        ("[1, 2].map(a, [3, 4].map(b, a * b + size(request.headers['x-long'].split('')) - 50000))", [[3, 4], [6, 8]]),
        ("[1, 2].map(a, default(request.headers['x-no'], 'none'))", ["none", "none"]),
        ("[1, 2].exists(a, has(request.headers['x-no'].b) || a == 2)", True),
    ],
)
def test_what_does_not_change_is_evaluated_once(text: str, value: Any) -> None:
    program = compile_expression(text)
    assert program.evaluate(asked()) == value
    assert program.evaluate(asked()) == value


def test_values_of_one_evaluation_are_not_those_of_the_next() -> None:
    program = compile_expression("['a', 'b'].map(c, c + request.headers['x-n'].upperAscii())")
    for text in ("one", "two"):
        assert program.evaluate(asked("x-n", text)) == [f"a{text.upper()}", f"b{text.upper()}"]


def test_a_random_value_is_new_for_each_member() -> None:
    found = compile_expression("['a', 'b', 'c', 'd'].map(c, string(random()) + uuid())").evaluate(asked())
    assert len(set(found)) == 4
