"""Expressions with given values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.admin.expressions import try_expression
from headgate.expr.custom import parse_functions


def tried(expression: Any, data: Any = None, functions: str = "") -> tuple[int, Any, str | None]:
    body: dict[str, Any] = {"expression": expression} if data is None else {"expression": expression, "data": data}
    status, answer = try_expression(json.dumps(body).encode(), parse_functions(functions))
    assert set(answer) == {"result", "error"}
    return status, answer["result"], answer["error"]


@pytest.mark.parametrize(
    ("expression", "data", "result"),
    [
        ("1 + 1", None, 2),
        ("request.path.startsWith('/a')", {"request": {"path": "/ab"}}, True),
        ("request.headers['x-a']", {"request": {"headers": {"X-A": "1"}}}, "1"),
        ("jwt.groups.exists(g, g == 'b')", {"jwt": {"groups": ["a", "b"]}}, True),
        ("request.startTime.getFullYear()", {"request": {"startTime": "2026-01-02T03:04:05Z"}}, 2026),
        ("string(request.body)", {"request": {"body": "aGk="}}, "hi"),
        ("{'a': b'x', 'd': duration('3s')}", None, {"a": "eA==", "d": "3.000000000s"}),
        ("response.code >= 500", {"response": {"code": 503}}, True),
        ("llm.inputTokens + llm.outputTokens", {"llm": {"inputTokens": 3, "outputTokens": 4}}, 7),
        ("has(jwt.sub)", {"jwt": {}}, False),
    ],
)
def test_values(expression: str, data: Any, result: Any) -> None:
    assert tried(expression, data) == (200, result, None)


def test_functions_of_the_configuration_are_known() -> None:
    assert tried("twice(4)", functions="twice(a) { a * 2 }") == (200, 8, None)


@pytest.mark.parametrize(
    ("expression", "data", "word"),
    [
        ("1 +", None, "ends too early"),
        ("request.pth", None, "did you mean"),
        ("nothing", None, "undeclared"),
        ("nothing", {"nothing": 1}, "undeclared"),
        ("1", {"nothing": 1}, "unknown variable"),
        ("1", {"request": 1}, "expected an object"),
        ("request.body", {"request": {"body": "!"}}, "data.request.body"),
        ("request.startTime", {"request": {"startTime": "noon"}}, "data.request.startTime"),
        ("x" * 20000, None, "longer than"),
        (1, None, "must be a string"),
        ("1", [], "expected|object"),
    ],
)
def test_what_cannot_be_compiled_or_bound_is_400(expression: Any, data: Any, word: str) -> None:
    status, result, error = tried(expression, data)
    if data == []:
        assert status == 200, "no data"
        return
    assert (status, result) == (400, None)
    assert word.split("|")[0] in (error or "")


@pytest.mark.parametrize("body", [b"", b"[]", b"1", b'"x"', b"{}", b"\xff", b"null"])
def test_a_body_without_an_expression_is_400(body: bytes) -> None:
    status, answer = try_expression(body, {})
    assert status == 400
    assert "expression" in answer["error"]


@pytest.mark.parametrize("expression", ["jwt.sub", "1 / 0", "request.path", "[1][4]"])
def test_an_evaluation_without_a_value_is_200_with_the_reason(expression: str) -> None:
    status, result, error = tried(expression)
    assert (status, result) == (200, None)
    assert error


def test_work_is_bounded() -> None:
    many = list(range(2000))
    status, _, error = tried("jwt.a.map(x, jwt.a.map(y, x * y))", {"jwt": {"a": many}})
    assert status == 200
    assert error
