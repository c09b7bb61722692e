"""Rows and details of trace events."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from headgate.cli.trace_events import (
    KINDS,
    Repeats,
    cut,
    deciding,
    diff_details,
    message_row,
    raw_details,
    read_row,
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


def event(type_: str, severity: str = "info", scope: list[str] | None = None, **more: object) -> str:
    return json.dumps({"eventStart": None, "eventEnd": 1500, "severity": severity, "scope": scope, "message": {"type": type_, **more}})


APPLIED = {"type": "apply", "details": {"status": 401}}
DECIDED = [
    # The index of the event, and the events before the last one.
    (1, [event("requestStarted"), event("policy", "error", kind="jwt", result=APPLIED), event("requestFinished", "error")]),
    (0, [event("authorizationResult", "error", result="deny"), event("policy", "error", kind="authorization", result=APPLIED)]),
    (0, [event("routeSelection", "error", selectedRoute=None), event("requestFinished", "error", status=404)]),
    (1, [event("backendCallResult", "error", status=503), event("backendCallResult", "success", status=200), event("requestFinished")]),
    (0, [event("backendCallResult", status=200), event("backendCallResult", "error", ["http", "mirror"]), event("requestFinished")]),
    (1, [event("policy", kind="cors", result={"type": "skip"}), event("policy", kind="direct_response", result=APPLIED), event("requestFinished")]),
    (1, [event("requestStarted"), event("requestFinished")]),
]


@pytest.mark.parametrize(("index", "lines"), DECIDED)
def test_the_event_that_decided(index: int, lines: list[str]) -> None:
    assert deciding([read_row(line) for line in lines]) == index


def test_events_about_the_same_thing_are_told_apart() -> None:
    repeats = Repeats()
    lines = [event("cel", expr="a", result=True), event("cel", expr="b", result=1), event("cel", expr="a", result=False), event("requestFinished"),
             event("backendCallStart", target="x:1"), event("backendCallStart", target="x:1"), event("requestFinished")]  # fmt: skip
    assert [repeats.marked(read_row(line)).summary for line in lines] == [
        "a => true", "b => 1", "#2 a => false", "request finished status=None", "x:1", "#2 x:1", "request finished status=None",
    ]  # fmt: skip
    assert read_row(lines[0]).at == "1.500"
    assert message_row("x").at == ""


def test_the_lines_of_a_text_are_lines() -> None:
    body = base64.b64encode(b"first\nsecond \"quoted\"\n").decode()
    text = raw_details(read_row(event("bodySnapshot", stage="response", body=body)), "json")
    assert text.endswith('"body": "<text 1 below>"\n  }\n}\n\nfirst\nsecond "quoted"\n')
    assert "second \"quoted\"" in raw_details(read_row(event("bodySnapshot", body=body)), "yaml")


def test_times_are_those_of_timed_events() -> None:
    assert [row.duration_us for row in ROWS if row.duration_us is not None] == [29, 9, 2000, 2004]


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_the_event_is_shown_without_empty_members_and_with_bodies_in_clear(form: str) -> None:
    text = raw_details(ROWS[14], form)
    assert "eventStart" not in text
    assert "item" in text
    shown = raw_details(ROWS[1], "json")
    assert json.loads(shown)["message"]["requestState"]["request"]["body"] == {"item": 7}


def test_the_result_of_an_expression_stands_above_the_request() -> None:
    event = {"message": {"type": "cel", "requestState": {"request": {"path": "/"}}, "expr": "1", "result": 1}}
    assert list(json.loads(raw_details(read_row(json.dumps(event)), "json"))["message"]) == ["type", "expr", "result", "requestState"]


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


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_an_event_with_nothing_in_it_does_no_harm(kind: str) -> None:
    assert read_row(json.dumps({"message": {"type": kind}})).kind == KINDS[kind][0]
