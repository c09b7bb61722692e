"""Expressions that differ only in their texts are compiled by their shape."""

from __future__ import annotations

import pytest

from headgate.expr import shapes
from headgate.expr.compile import MAX_CHARS, ExpressionError, compile_expression
from headgate.expr.custom import parse_functions
from headgate.expr.shapes import Expressions


def compiles(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed from now on."""
    parsed: list[str] = []

    def noting(text: str, *rest: object) -> object:
        parsed.append(text)
        return compile_expression(text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(shapes, "compile_expression", noting)
    return parsed


SHARED = [
    'request.path.startsWith("/NAME") && request.method in ["GET", "POST"]',
    '"NAME-" + request.method',
    "request.headers['x-a'] == 'NAME'",
    'jwt.sub == "NAME" || jwt["iss"] == "NAME"',
    '{"a": request.path, "NAME": "NAME"}',
    'request.path.contains("\\"NAME\\n")',
    '[1, 2].exists(x, x > 1) && request.path == "NAME"',
    'has(jwt.less) ? "NAME" : "x"',
    'request.path in ["a", "NAME", "a"]',
]
ALONE = [
    'request.path.matches("^/NAME")',
    'size("NAME") > 3',
    '"a" + "NAME"',
    'r"NAME" == request.path',
    "'''NAME''' == request.path",
    'request.path == "NAME" // a comment',
    'duration("1s") < duration("2s") && request.path == "NAME"',
    'jwt[ "NAME" ]',
    "request.body == b'x' || request.path == 'NAME'",
]


@pytest.mark.parametrize("text", SHARED + ALONE)
def test_a_program_is_the_one_that_the_expression_has_by_itself(text: str) -> None:
    found = Expressions()
    for name in ("first", "second", "", "x" * 300, "zeichen-\u00e4\u20ac\U0001f600"):
        one = text.replace("NAME", name)
        shared, alone = found.program(one, "route"), compile_expression(one, "route")
        assert shared.text == one
        assert shapes.equal_trees(shared.root_node, alone.root_node)
        assert shared.variables == alone.variables
        assert shared.needs_request_body == alone.needs_request_body


@pytest.mark.parametrize(
    ("one", "other"),
    [('request.path in ["a", "b"]', 'request.path in ["a", "c"]'), ("1.0 == 2.0", "1 == 2"), ("request.path", "request.method"),
     ('size(request.path) > 0 ? "a" : "b"', 'size(request.path) > 0 ? "a" : "c"')],
)
def test_trees_of_different_expressions_differ(one: str, other: str) -> None:
    trees = [compile_expression(text, "route").root_node for text in (one, other, one)]
    assert not shapes.equal_trees(trees[0], trees[1])
    assert shapes.equal_trees(trees[0], trees[2])


@pytest.mark.parametrize("text", SHARED)
def test_a_shape_is_parsed_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = compiles(monkeypatch)
    found = Expressions()
    for number in range(5):
        found.program(text.replace("NAME", f"n{number}"), "route")
    assert len(parsed) == 1


@pytest.mark.parametrize("text", ALONE)
def test_what_depends_on_its_texts_is_compiled_by_itself_and_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = compiles(monkeypatch)
    found = Expressions()
    for _ in range(3):
        found.program(text, "route")
    assert len(parsed) <= 2, "to look for a shape, and by itself"


@pytest.mark.parametrize(
    "text",
    ['request.path.matches("(")', 'request.path == "a', 'nothing == "a"', '"\\q" == "a"', 'size("a", "b")', '"a" in', "1 +"],
)
def test_faults_are_those_of_the_expression_itself(text: str) -> None:
    with pytest.raises(ExpressionError) as alone:
        compile_expression(text)
    found = Expressions()
    for _ in range(2):
        with pytest.raises(ExpressionError) as shared:
            found.program(text, "route")
        assert str(shared.value) == str(alone.value)


def test_a_long_text_is_as_long_as_it_is() -> None:
    found = Expressions()
    found.program('request.path == "a"', "route")
    with pytest.raises(ExpressionError, match="longer than"):
        found.program(f'request.path == "{"a" * MAX_CHARS}"', "route")


def test_functions_of_the_configuration_are_those_of_the_call() -> None:
    found = Expressions()
    one, other = parse_functions('f(x) { x + "1" }'), parse_functions('f(x) { x + "2" }')
    results = [found.program('f("a")', "route", functions).evaluate_with({}) for functions in (one, other, one)]
    assert results == ["a1", "a2", "a1"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MAX_SHAPES", 3)
    monkeypatch.setattr(shapes, "MAX_PROGRAMS", 3)
    found = Expressions()
    for number in range(20):
        found.program(f"request.path.size() > {number}", "route")
        found.program(f'request.path == "a" || {number} > 1', "route")
        assert len(found._shapes) <= 3
        assert len(found._programs) <= 3
