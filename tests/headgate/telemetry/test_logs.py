"""Log lines."""

from __future__ import annotations

import json
import logging

import pytest

from headgate.telemetry.logs import JsonFormatter, TextFormatter


def record(message: str, **extra: object) -> logging.LogRecord:
    return logging.getLogger("headgate.x").makeRecord("headgate.x", logging.WARNING, "f", 1, message, (), None, extra=extra)


@pytest.mark.parametrize(
    ("value", "shown"),
    [("plain", "plain"), ("two words", '"two words"'), ("", '""'), ('q"q', r'"q\"q"'), ("a\nb", r'"a\nb"'), (7, "7"), ("\x1b[0m", '"\\u001b[0m"')],
)
def test_a_text_line_quotes_what_needs_it(value: object, shown: str) -> None:
    line = TextFormatter().format(record("it happened", key=value))
    time, level, scope, rest = line.split("\t")
    assert time.endswith("Z")
    assert (level, scope) == ("warn", "headgate.x")
    assert rest == f"it happened key={shown}"


def test_a_line_break_in_the_message_stays_in_the_line() -> None:
    assert "\n" not in TextFormatter().format(record("a\nb"))


def test_a_json_line_is_an_object_with_the_fields() -> None:
    found = json.loads(JsonFormatter().format(record("it happened", key='v"\n')))
    assert (found["level"], found["scope"], found["message"], found["key"]) == ("warn", "headgate.x", "it happened", 'v"\n')
