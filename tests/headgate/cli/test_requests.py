"""What `gwctl requests` asks for, and how it shows a record."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest

from headgate.cli import requests
from headgate.cli.requests import filters, sent, shown

NOTHING: dict[str, Any] = {"status": [], "provider": (), "model": (), "trace_id": None, "attribute": {}, "route": None}
RECORD: dict[str, Any] = {
    "id": "7", "completedAt": "2027-01-31T12:00:00.000000Z", "durationMs": 12.345, "httpStatus": 502, "error": "no\x1b[31m answer",
    "genAi": {"requestModel": "small", "responseModel": None}, "usage": {"inputTokens": 3, "outputTokens": None}, "cost": 0.00125,
    "attributes": {"http.method": "POST", "http.path": "/v1/chat/completions", "route": "default/llm"},
}  # fmt: skip


def option(read: Any, value: Any) -> Any:
    return read(None, None, value)


def test_statuses_are_numbers_and_classes() -> None:
    assert option(requests.statuses, "404,5xx, 0") == [404, "5xx", 0]
    assert option(requests.statuses, None) == []
    for bad in ("5x", "abc", "404,", "6xx", "-1"):
        with pytest.raises(click.BadParameter):
            option(requests.statuses, bad)


def test_times_are_ages_or_times() -> None:
    assert option(requests.since, None) is None
    assert option(requests.since, "2027-01-31T12:00:00Z") == "2027-01-31T12:00:00Z"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", option(requests.since, "15m"))
    for bad in ("15", "m", "15w", "-1h"):
        with pytest.raises(click.BadParameter):
            option(requests.since, bad)


def test_filters_are_those_that_were_given() -> None:
    assert filters(NOTHING) == {}
    given = {
        **NOTHING,
        "status": ["5xx"],
        "model": ("a", "b"),
        "route": "default/x",
        "attribute": {"user.id": "ada"},
        "trace_id": "ab",
    }
    assert filters(given) == {
        "httpStatus": ["5xx"], "requestModel": ["a", "b"], "traceId": "ab", "attributes": {"user.id": "ada", "route": "default/x"},
    }  # fmt: skip


def test_a_record_is_a_line_that_controls_no_terminal() -> None:
    line = shown(RECORD)
    assert re.match(
        r"2027-01-3\d \d\d:\d\d:\d\d 502 +12\.3ms +POST /v1/chat/completions +default/llm +small +3\+0 +\$0\.00125",
        line,
    )
    assert line.endswith("no?[31m answer")
    small = shown(RECORD, 80)
    assert len(small) <= 80
    assert re.match(r"\d\d:\d\d:\d\d 502 +12\.3ms +POST /v1/chat/comp\S*… default/llm +no\?\[31m answer$", small)
    assert shown({**RECORD, "error": None}, 80).endswith(" small 3+0 $0.00125")
    assert " none " in shown(
        {**RECORD, "httpStatus": 0, "error": None, "genAi": None, "usage": None, "cost": None, "attributes": None}
    )


def test_calls_of_mcp_servers_say_what_was_called() -> None:
    own = {"http.method": "POST", "http.path": "/mcp", "mcp.method.name": "tools/call", "mcp.tool.name": "echo"}
    line = shown({**RECORD, "error": None, "attributes": {**own, "mcp.error.message": "unknown tool"}})
    assert " POST /mcp tools/call echo " in line
    assert line.endswith("unknown tool")


def test_events_of_a_stream() -> None:
    lines = [
        b": \n",
        b"\n",
        b"event: log\n",
        b'data: {"entry": {"id": "1"}}\n',
        b"\n",
        b"event: heartbeat\n",
        b"data: {}\n",
    ]
    assert list(sent(iter(lines))) == [("log", {"entry": {"id": "1"}}), ("heartbeat", {})]
