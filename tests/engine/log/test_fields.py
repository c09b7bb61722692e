"""Fields of access-log lines by expression."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.expr.compile import compile_expression
from headgate_drivers.log import added_fields, is_logged
from headgate_engine.context.headers import hide_headers
from headgate_engine.context.request import make_context
from headgate_engine.log.fields import JsonText, LogFields, shown

VALUES: dict[str, Any] = {
    "'a'": "a",
    "1": 1,
    "1u": 1,
    "1.5": 1.5,
    "true": True,
    "null": None,
    "b'abc'": "abc",
    "b'\\xff'": "/w==",
    "duration('90s')": "90s",
    "timestamp('2026-01-02T03:04:05Z')": "2026-01-02T03:04:05Z",
    "[1, 'a', null]": '[1,"a",null]',
    "{'a': {'b': [true]}}": '{"a":{"b":[true]}}',
    "request.headers": '{"a":"1","b":["2","3"]}',
    "ip('10.0.0.1')": "10.0.0.1",
}
HEADERS = (("a", "1"), ("b", "2"), ("b", "3"))


def fields(*texts: str, filter: str | None = None) -> LogFields:
    program = None if filter is None else compile_expression(filter, "log")
    return LogFields(program, [(f"k{i}", compile_expression(text, "log")) for i, text in enumerate(texts)])


@pytest.mark.parametrize("text", VALUES)
def test_values_as_a_line_has_them(text: str) -> None:
    found = added_fields(fields(text), make_context(headers=HEADERS))
    wanted = VALUES[text]
    assert found == ([] if wanted is None else [("k0", wanted)])
    if found and isinstance(found[0][1], JsonText):
        json.loads(str(found[0][1]))


def test_header_fields_one_by_one() -> None:
    found = added_fields(fields("flatten(request.headers.redacted())"), make_context(headers=(*HEADERS, ("cookie", "CANARY"))))
    assert found == [("k0.a", "1"), ("k0.b", '["2","3"]'), ("k0.cookie", "<redacted>")]


def test_failures_and_nulls_are_left_out_and_order_is_kept() -> None:
    found = added_fields(fields("'x'", "jwt.sub", "1 / 0", "null", "'y'"), make_context())
    assert found == [("k0", "x"), ("k4", "y")]


def test_flattened_members_are_fields_of_their_own() -> None:
    found = fields("flatten({'a': 1, 'b': {'c': null, 'd': 2}})", "flattenRecursive([['x'], {'y': 'z'}])", "flatten([])")
    assert added_fields(found, make_context()) == [("k0.a", 1), ("k0.b", '{"c":null,"d":2}'), ("k1.0.0", "x"), ("k1.1.y", "z")]


@pytest.mark.parametrize(
    ("text", "kept"), [("true", True), ("false", False), ("jwt.sub == 'x'", False), ("request.path == '/'", True)]
)
def test_filters(text: str, kept: bool) -> None:
    assert is_logged(fields(filter=text), make_context()) is kept


def test_nothing_of_a_credential_shows() -> None:
    hide_headers(["X-My-Token"])
    ctx = make_context(headers=(("x-my-token", "CANARY"), ("authorization", "CANARY"), ("x-free", "shown")))
    found = added_fields(fields("request.headers.redacted()", "request.headers.redacted()['x-my-token']"), ctx)
    assert "CANARY" not in str(found)
    assert "shown" in str(found)


def test_values_without_a_text_are_none() -> None:
    assert shown(object()) is None
