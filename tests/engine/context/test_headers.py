"""Message heads against a plain list of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.expr.compile import compile_expression
from headgate_engine.context.headers import MessageHead, hide_headers
from headgate_engine.context.request import make_context

NAMES = st.sampled_from(["Host-X", "x-a", "X-A", "cookie", "Set-Cookie", "content-type", "very-long-" + "n" * 200])
VALUES = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)
OPERATIONS = st.lists(st.tuples(st.sampled_from(["add", "set", "remove"]), NAMES, VALUES), max_size=60)


@given(OPERATIONS)
def test_edits_give_what_a_list_gives(operations: list[tuple[str, str, str]]) -> None:
    head, model = MessageHead(), []
    for verb, name, value in operations:
        kept = value.strip(" \t")
        if verb != "add":
            gone = [pair for pair in model if pair[0].lower() == name.lower()]
            model = [pair for pair in model if pair[0].lower() != name.lower()]
        if verb == "remove":
            assert head.remove(name) == len(gone)
        else:
            getattr(head, verb)(name, value)
            model.append((name, kept))
    assert head.items() == model
    for name in ("x-a", "COOKIE", "nope"):
        values = [value for key, value in model if key.lower() == name.lower()]
        assert head.get_list(name) == values
        assert head.get(name) == (values[0] if values else None)


def test_a_name_with_control_characters_is_no_known_field() -> None:
    """Setting bit 5 of a carriage return makes a hyphen of it."""
    head = MessageHead()
    head.add("content-type", "text/plain")
    assert head.get("content-type") == head.get("Content-Type") == "text/plain"
    for name in ("content\rtype", "content\x0dtype", "content_type", "content-type\n", ""):
        assert head.get(name) is None


@pytest.mark.parametrize(("name", "value"), [("", "1"), ("a b", "1"), ("a:", "1"), ("a", "1\r\n"), ("a", "\0")])
def test_what_cannot_be_a_field_is_refused(name: str, value: str) -> None:
    for verb in ("add", "set"):
        with pytest.raises(ValueError, match="header"):
            getattr(MessageHead(), verb)(name, value)


REQUESTS = [("GET", "/a?b=c", "a.test:80"), ("OPTIONS", "*", "a"), ("CONNECT", "a.test:443", "a.test:443"), ("PURGE", "/", "")]


@pytest.mark.parametrize(("method", "target", "authority"), REQUESTS)
def test_request_lines(method: str, target: str, authority: str) -> None:
    head = MessageHead()
    head.set_request(method, target, authority)
    path, _, query = target.partition("?")
    assert (head.method, head.target, head.authority, head.path, head.query) == (method, target, authority, path, query)


@pytest.mark.parametrize(("method", "target", "authority"), [
    ("", "/", "a"), ("G T", "/", "a"), ("GET", "a", "a"), ("GET", "/a b", "a"), ("GET", "*", "a"), ("GET", "/", "a b"),
    ("CONNECT", "/", "a:1"), ("CONNECT", "a:1", "b:1")])
def test_bad_request_lines(method: str, target: str, authority: str) -> None:
    with pytest.raises(ValueError, match="is not"):
        MessageHead().set_request(method, target, authority)


def test_sensitive_fields_are_those_that_were_named_last() -> None:
    def hidden() -> list[str]:
        ctx = make_context(headers=[("x-one", "v"), ("x-two", "v"), ("x-three", "v")])
        shown = {name: compile_expression(f'request.headers.redacted()["{name}"]').evaluate(ctx) for name, _ in ctx.request.items()}
        return sorted(name for name, value in shown.items() if value == "<redacted>")

    try:
        hide_headers(["X-One", "x-two", "x-one"])
        assert hidden() == ["x-one", "x-two"]
        for number in range(100):
            hide_headers([f"x-{number}", "x-three"])
        assert hidden() == ["x-three"]
        hide_headers(f"x-{number}" for number in range(64))
        with pytest.raises(ValueError, match="more than 64"):
            hide_headers(f"x-{number}" for number in range(65))
        with pytest.raises(TypeError):
            hide_headers([None])  # type: ignore[list-item]
    finally:
        hide_headers([])
    assert hidden() == []
