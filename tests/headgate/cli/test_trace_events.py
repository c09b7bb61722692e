"""Rows and details of trace events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headgate.cli.trace_events import (
    KINDS,
    cut,
    diff_details,
    message_row,
    raw_details,
    read_row,
    readable,
    snapshot_details,
)  # fmt: skip

LINES = (Path(__file__).parent / "data" / "trace.jsonl").read_text().splitlines()
ROWS = [read_row(line) for line in LINES]


def test_every_event_has_its_row() -> None:
    assert [(row.kind, row.summary, row.severity) for row in ROWS] == [
        ("Request Start", "request started", "info"),
        ("Snapshot", "initial request", "info"),
        ("Tracing", "not sampled (random)", "info"),
        ("Policies", "gateway effective policies: none", "info"),
        ("Route", 'selected "default/shop" (2 evaluated)', "info"),
        ("Policies", "route effective policies: cors, jwtAuth", "info"),
        ("Policy", "cors skipped: request has no Origin header", "info"),
        ("Policy", "url_rewrite: rewrote /cart to /v2/cart", "info"),
        ("Policy Event", 'jwt: {"issuer": "https://issuer.example"}', "info"),
        ("CEL", 'request.path == "/cart" => true', "info"),
        ("CEL", 'jwt.sub => {"error": "no such key"}', "warn"),
        ("Authz", "allowed (1 allow, 0 deny, 1 require matches)", "success"),
        ("Snapshot", "final request", "info"),
        ("Backend Start", "127.0.0.1:9000", "info"),
        ("Body Snapshot", "final request", "info"),
        ("Backend Result", "status=200", "success"),
        ("Backend Result", "http > mirror: status=None error=Connection refused", "error"),
        ("Snapshot", "final response", "info"),
        ("Request Done", "request finished status=200", "success"),
    ]


def test_times_are_those_of_timed_events() -> None:
    assert [row.duration_us for row in ROWS if row.duration_us is not None] == [29, 9, 2000, 2004]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_event_is_shown_without_empty_members_and_with_bodies_in_clear(form: str) -> None:
    text = raw_details(ROWS[14], form)
    assert "eventStart" not in text
    assert "item" in text
    shown = raw_details(ROWS[1], "json")
    assert json.loads(shown)["message"]["requestState"]["request"]["body"] == {"item": 7}


def test_a_snapshot_holds_until_the_next() -> None:
    assert snapshot_details(ROWS, 0, "json") == "no snapshot yet"
    assert snapshot_details(ROWS, 11, "json") == snapshot_details(ROWS, 1, "json")
    assert '"/v2/cart"' in snapshot_details(ROWS, 12, "json")


def test_the_difference_of_two_snapshots() -> None:
    assert diff_details(ROWS, 1, "yaml") == "no earlier snapshot to compare with"
    lines = diff_details(ROWS, 12, "yaml").splitlines()
    assert lines[:2] == ["--- initial request", "+++ final request"]
    assert "-  path: /cart" in lines
    assert "+  path: /v2/cart" in lines
    assert "+    x-team: edge" in lines
    assert diff_details([ROWS[1], ROWS[1]], 1, "json") == "no change between initial request and initial request"


@pytest.mark.parametrize("text", ["not JSON", "[]", "{}", '{"message": {"type": "of tomorrow"}}', '{"type":"serialization_error","error":"x"}'])
def test_what_is_no_event_is_shown_as_it_came(text: str) -> None:
    row = read_row(text)
    assert (row.kind, row.severity, row.summary) == ("Message", "error", text)
    raw_details(row, "json")


def test_messages_of_the_tool() -> None:
    assert raw_details(message_row("the stream broke"), "yaml") == "the stream broke"


@pytest.mark.parametrize(("text", "shown"), [("a\nb", "a b"), ("x" * 120, "x" * 120), ("x" * 121, "x" * 117 + "...")])
def test_summaries_are_one_line_of_at_most_120(text: str, shown: str) -> None:
    assert cut(text) == shown


@pytest.mark.parametrize(("body", "shown"), [("e30=", {}), ("aGk=", "hi"), ("/w==", "/w=="), ("!", "!"), (None, None)])
def test_bodies(body: object, shown: object) -> None:
    assert readable(body) == shown


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_event_with_nothing_in_it_does_no_harm(kind: str) -> None:
    assert read_row(json.dumps({"message": {"type": kind}})).kind == KINDS[kind][0]
