"""Values of expressions on their way to another worker."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate.expr.portable import portable, restored
from headgate_engine.context.request import make_context
from headgate_engine.expr.values import Redacted

# An expression for each type, and one for what depends on the type of its value `x`.
VALUES = [
    ("null", "x == null"), ("true", "x"), ("-7", "x + 1"), ("9223372036854775807", "x - 1"), ("18446744073709551615u", "x / 2u"), ("1.5", "x * 2.0"),
    ("'\u00fc'", "x.size()"), ("b'\\xff\\x00'", "x.size()"), ("[1, 2u, 'a', [b'b']]", "x[3][0]"), ("{'a': 1, 2: {'b': null}, true: 3u}", "x[2].b == null && x[true] == 3u"),
    ("duration('-1.5s')", "x + duration('2s')"), ("timestamp('2020-01-01T00:00:00.5Z')", "x.getFullYear()"), ("type(1)", "x == int"),
    ("ip('10.0.0.1')", "x.isLoopback()"), ("cidr('10.1.2.3/8')", "x.containsIP('10.9.9.9')"), ("optional.of([1])", "x.value()[0]"), ("optional.none()", "x.hasValue()"),
    ("request.pathAndQuery", "x.query('q')"), ("jwt.rawToken", "x.unredacted()"), ("request.headers.map(h, h)", "x.size()"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "use"), VALUES, ids=[text for text, _ in VALUES])
def test_a_value_arrives_as_it_was(text: str, use: str) -> None:
    ctx = make_context("GET", "/a?q=1&q=2", "a.test", [("x-one", "1")])
    ctx.jwt, ctx.jwt_token = {"sub": "me"}, b"token"
    value = compile_expression(text).evaluate(ctx)
    found = restored(json.loads(json.dumps(portable(value))))
    assert type(found) is type(value)
    ctx.metadata = {"x": found}
    there = compile_expression(f"metadata.x.with(x, {use})").evaluate(ctx)
    ctx.metadata = {"x": value}
    here = compile_expression(f"metadata.x.with(x, {use})").evaluate(ctx)
    assert (repr(there), type(there)) == (repr(here), type(here))
    if isinstance(value, Redacted):
        assert found.reveal() == value.reveal() == "token"


def test_fields_arrive_as_fields() -> None:
    ctx = make_context("GET", "/", "a.test", [("X-One", "1, 2"), ("x-two", "a"), ("x-two", "\u00fc")])
    value: Any = compile_expression("request.headers").evaluate(ctx)
    ctx.metadata = {"h": restored(json.loads(json.dumps(portable(value))))}
    text = "[metadata.h['x-ONE'], metadata.h['X-Two'][1], metadata.h.split()['x-one'][1], string(has(metadata.h.nope))]"
    assert compile_expression(text).evaluate(ctx) == ["1, 2", "\u00fc", "2", "false"]


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError):
        portable(object())
