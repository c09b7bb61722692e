"""Names and forms of events."""

from __future__ import annotations

import json

import pytest

from headgate.trace.events import frame, kind_of, severity_of_status, stage_of


def test_a_frame_is_one_line_of_compact_json() -> None:
    line = frame({"type": "policyEvent", "kind": "k", "details": "a\nb"}, "warn", 12, 3, ("mcp", "x"))
    assert b"\n" not in line
    assert line == (
        b'{"eventStart":3,"eventEnd":12,"severity":"warn","scope":["mcp","x"],'
        b'"message":{"type":"policyEvent","kind":"k","details":"a\\nb"}}'
    )
    assert json.loads(frame({"type": "requestStarted"}, "info", 1)) == {
        "eventStart": None, "eventEnd": 1, "severity": "info", "message": {"type": "requestStarted"},
    }  # fmt: skip


@pytest.mark.parametrize("value", [float("nan"), object(), {1j: 2}])
def test_what_is_no_json_becomes_an_error_event(value: object) -> None:
    found = json.loads(frame({"type": "cel", "result": value}, "info", 1))
    assert found["type"] == "serialization_error"
    assert set(found) == {"type", "error"}


@pytest.mark.parametrize(
    ("name", "phase", "stage"),
    [
        ("jwtAuth", "gateway", "gateway jwt"),
        ("jwtAuth", "route", "jwt auth"),
        ("cors", "gateway", "gateway cors"),
        ("transformations", "route", "transformation"),
        ("transformations", "backend", "backend transformation"),
        ("backendAuth", "backend", "backend auth"),
        ("urlRewrite", "route", "url rewrite"),
        ("somethingNew", "route", "something new"),
    ],
)
def test_stages_have_the_names_of_the_reference(name: str, phase: str, stage: str) -> None:
    assert stage_of(name, phase) == stage


def test_an_unknown_step_is_told_by_its_own_name() -> None:
    assert kind_of("somethingNew") == ("something_new", "something new")


@pytest.mark.parametrize(
    ("status", "error", "severity"),
    [(200, None, "info"), (404, None, "warn"), (500, None, "error"), (200, "x", "error"), (None, None, "error")],
)
def test_severity_follows_the_status(status: int | None, error: str | None, severity: str) -> None:
    assert severity_of_status(status, error) == severity
