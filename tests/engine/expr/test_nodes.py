"""What a missing key costs and which errors it gives."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate_engine.context.request import make_context
from headgate_engine.expr import nodes, views
from headgate_engine.expr.values import EvaluationError, NoSuchKey


@pytest.mark.parametrize(("text", "value"), [
    ('default(request.headers["x"], "none")', "none"),
    ("default(request.headers.x, 1)", 1),
    ('has(request.headers.x)', False),
    ('"x" in request.headers', False),
    ('request.headers.?x.orValue("none")', "none"),
    ('request.headers[?"x"].hasValue()', False),
    ('coalesce(request.headers.x, jwt.sub, "last")', "last"),
    ('default(jwt.sub, "nobody")', "nobody"),
    ('default(jwt["sub"], "nobody")', "nobody"),
    ('default(jwt.a.b.c, "nobody")', "nobody"),
    ('has(jwt.sub)', False),
    ('jwt.?sub.orValue("nobody")', "nobody"),
    ('request.headers.x == "a" || request.path == "/"', True),
    ('request.path == "/" || request.headers.x == "a"', True),
    ('request.headers.x == "a" && request.path == "/other"', False),
    ('default({"a": 1}["b"], 2)', 2),
    ('default(source.address, "nowhere")', "nowhere"),
    ("default(source.port, 0)", 0),
    ('default(destination.hostname, "none")', "none"),
    ('default(jwt.rawToken, "none")', "none"),
    ('default(apiKey.key, "none")', "none"),
    ('basicAuth.username == "ann" || request.path == "/"', True),
    ("has(backend.name)", False),
    ('coalesce(llm.provider, llm.requestModel, "none")', "none"),
    ("has(llm.inputTokens)", False),
])
def test_an_answer_without_the_key_costs_no_exception(text: str, value: object, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_expression(text)

    class Raised(NoSuchKey):
        def __init__(self, *arguments: Any) -> None:
            raise AssertionError(f"an exception is made: {arguments}")

    for module in (nodes, views):
        monkeypatch.setattr(module, "NoSuchKey", Raised)
    assert compiled.evaluate(make_context()) == value


@pytest.mark.parametrize("text", [
    'request.headers.x == "a"', 'request.headers["x"] in ["a", "b"]', 'request.headers.x.startsWith("a")', "request.headers.x in [1]",
    '!(request.headers.x == "a")', 'request.headers.x == "a" || request.path == "/other"', "request.headers.x",
    'request.headers.x == "a" && request.path == "/"', 'request.path == "/" && request.headers.x == "a"', "jwt.sub == request.path",
])
def test_a_condition_over_a_missing_key_is_unknown_and_its_value_an_error(text: str) -> None:
    compiled = compile_expression(text)
    assert compiled.test(make_context()) == -1
    with pytest.raises(EvaluationError, match=r"no such key: (x|sub)$"):
        compiled.evaluate(make_context())


@pytest.mark.parametrize("text", [
    '(request.headers.x == "a") ? 1 : 2', '[1].map(i, request.headers.x == "a", i)', '[1].filter(i, request.headers.x == "a")',
    '{"a": 1}.filterKeys(k, request.headers.x == k)', '[1].all(i, request.headers.x == "a")', 'coalesce(request.headers.x, jwt.sub)',
    '[request.headers.x]', '{"a": request.headers.x}', 'size(request.headers.x)', 'request.headers.x + "a"', 'request.headers.x < "a"',
])
def test_what_needs_the_value_fails(text: str) -> None:
    with pytest.raises(NoSuchKey):
        compile_expression(text).evaluate(make_context())


def test_an_error_on_the_left_outweighs_a_missing_key_on_the_right() -> None:
    with pytest.raises(EvaluationError, match="divide by zero"):
        compile_expression('1 / int(request.path.size() - 1) > 0 || request.headers.x == "a"').evaluate(make_context())


def test_a_missing_key_decides_nothing_in_a_quantifier() -> None:
    ctx = make_context(headers=[("y", "1")])
    assert compile_expression('["x", "y"].exists(n, request.headers[n] == "1")').evaluate(ctx) is True
    assert compile_expression('["x", "y"].all(n, request.headers[n] == "2")').evaluate(ctx) is False
