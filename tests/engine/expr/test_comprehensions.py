"""What macros cost: work and memory follow the sizes of values, and parts that do not change are evaluated once."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import RequestContext, make_context
from headgate_engine.expr.functions import json_text
from headgate_engine.expr.values import EvaluationError
from headgate_engine.expr.views import HeaderFields

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


# The same long value many times takes no memory, but what is made of it does, and time.
SHARED = [
    "toJson(h.split('').map(c, h))",
    "toJson(h.split('').map(c, request.headers))",
    "toJson(h.split('').map(c, request.body))",
    "toJson(h.split('').map(c, optional.of(h)))",
    "toJson({'a': h.split('').map(c, {'b': jwt})})",
    "h.split('').map(c, coalesce(toJson(h.split('').map(d, h)), 'x'))",
    "form.encode({'a': h.split('').map(c, h)})",
    "flatten(h.split('').map(c, h)).with(f, h.split('').map(c, toJson([f, c])))",
    "toJson(h.split('').map(c, flatten(h.split(''))))",
    "h.split('').map(c, uuid() + c)",
    "h.split('').map(c, variables())",
    "[1, 1]" + "".join(f".with(a{n}, [a{n}, a{n}])" for n in range(40)) + ".size()",
    "[1, 1]" + "".join(f".with(a{n}, [a{n}, a{n}])" for n in range(40)) + ".with(x, x == x)",
]


@pytest.mark.parametrize("text", SHARED, ids=[text[:50] for text in SHARED])
def test_values_that_are_there_many_times_are_charged_as_often(text: str) -> None:
    ctx = make_context("GET", "/", "a.test", [("x-long", LONG)], body=b"b" * 50_000)
    ctx.jwt = {"groups": ["g" * 1000] * 8}
    program = compile_expression(f"request.headers['x-long'].with(h, {text})")
    tracemalloc.start()
    try:
        with pytest.raises(EvaluationError, match=r"takes too many steps|value is too long"):
            program.evaluate(ctx)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 << 20


def test_what_is_written_as_json_has_a_limit() -> None:
    """Also where no evaluation counts: in bodies of answers and fields of the log."""
    for value in ([LONG] * 200, {"a": [LONG.encode()] * 200}, [HeaderFields(asked().request)] * 200, {LONG: 1, "b": [{LONG: [LONG]}] * 200}):
        with pytest.raises(EvaluationError, match="value is too long"):
            json_text(value)
    assert len(json_text([LONG] * 100)) == 100 * 50_003 + 1


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
