"""What a trace shows of values."""

from __future__ import annotations

import base64
import json

import pytest

from headgate.expr.compile import compile_expression
from headgate.trace.state import MAX_DEPTH, Secrets, plain, seconds
from headgate_engine.expr.values import Duration, Timestamp, Uint


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (1.5, 1.5),
        ("text", "text"),
        (b"bytes", base64.b64encode(b"bytes").decode()),
        (b"0123456789ABCDEF", base64.b64encode(b"0123456789").decode()),
        (Duration(1_614_666), "0.001614666s"),
        (Uint(7), 7),
        ({"a": None, "b": [1, {"c": b""}]}, {"b": [1, {"c": ""}]}),
        ({"uri": "/a?token=abc"}, {"uri": "/a?token=<redacted>"}),
    ],
)
def test_values_become_json(value: object, shown: object) -> None:
    assert plain(value, 10) == shown
    json.dumps(plain(value, 10))


def test_times_are_text() -> None:
    assert plain(Timestamp(0), 10).startswith("1970-01-01T00:00:00")


def test_endless_nesting_ends() -> None:
    value: list[object] = []
    value.append(value)
    text = json.dumps(plain(value, 10))
    assert text.count("[") == MAX_DEPTH + 1
    assert '"..."' in text


def test_spans_are_seconds() -> None:
    assert seconds(1_500_000_000) == "1.500000000s"


def secrets(*values: str) -> Secrets:
    found = Secrets.__new__(Secrets)
    found._names = {"x-api-key"}
    found._values = set(values)
    return found


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("request.path", "/plain", "/plain"),
        ("request.path", "has sekrit-key inside", "<redacted>"),
        ("request.path", "sekrit-k", "<redacted>"),
        ("request.path", "sek", "sek"),
        ("request.path", ["a", {"b": "sekrit-key"}], ["a", {"b": "<redacted>"}]),
        ('request.headers["x-api-key"]', "reversed", "<redacted>"),
        ('request.headers["x-api-key"] == "a"', True, True),
        ("request.path", None, None),
    ],
)
def test_results_do_not_show_credentials(text: str, value: object, shown: object) -> None:
    program = compile_expression(text, "log", {})
    assert secrets("sekrit-key").cleaned(program, value) == shown


def test_a_header_to_which_a_credential_was_copied_is_hidden() -> None:
    headers = {"x-copy": "Basic sekrit-key", "x-list": ["a", "sekrit-key"], "x-part": "sekrit-k", "x": "y"}
    shown = {"x-copy": "<redacted>", "x-list": "<redacted>", "x-part": "sekrit-k", "x": "y"}
    assert secrets("sekrit-key").uncopied(headers) == shown
