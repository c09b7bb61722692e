"""The views of `gwctl top`, and the rates between two looks."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from tests.headgate.cli.traffic_rig import DUMP, STATE, TARGETS

from headgate.cli.top_views import HEADS, VIEWS, TopLook, headline, rows

KEYS = [
    {"name": "ci", "team": "research", "limits": [{"dollars": "25", "per": "month"}]},
    {"name": "old", "revoked": True},
]
SPENT = {"ci": {"key": "ci", "requests": 7, "inputTokens": 30, "outputTokens": 12, "cost": "0.250000000000"}}
ERRORS = [
    {"id": "1", "completedAt": "2027-01-31T12:00:05.5Z", "httpStatus": 502, "durationMs": 3.0, "error": "refused",
     "attributes": {"http.method": "GET", "http.path": "/a", "route": "default/busy"}},
    {"id": "2", "completedAt": "2027-01-31T12:00:06.5Z", "httpStatus": 0, "durationMs": 3.0, "error": None,
     "attributes": {"mcp.method.name": "tools/call", "reason": "MCP"}},
]  # fmt: skip


def look(seconds: float, **more: Any) -> TopLook:
    state = {**deepcopy(STATE), "time": 1000 * (1_800_000_000 + seconds), "all": {"requests": 13}, "workers": [{"connections": 4}, {}],
             "version": "1.0", "generation": 3}  # fmt: skip
    return TopLook(state=state, dump=DUMP, targets=deepcopy(TARGETS), keys=KEYS, spent=SPENT, errors=ERRORS, **more)


def test_rates_are_those_since_the_last_look() -> None:
    before, now = look(0), look(2)
    now.state["routes"][0]["requests"] = 30
    now.state["models"][0]["requests"] += 5
    now.state["models"][0]["outputTokens"] += 100
    now.targets[0]["calls"] += 3
    now.state["all"]["requests"] = 33
    assert rows("routes", now, before)[0][:5] == ("default/busy", "10.0", "30", "2", "1")
    assert [row[1] for row in rows("routes", now)] == ["-"] * 3, "nothing is known of the time before"
    small = next(row for row in rows("models", now, before) if row[0] == "small")
    assert (small[2], small[6]) == ("2.5", "50.0")
    assert rows("sessions", now, before)[0] == (
        "near", "down", "-", "2", "0.0", "1", "1", "-", "-", "tools"
    )
    assert rows("sessions", now, before)[1] == ("far", "up", "shop 1.2", "2", "1.5", "9", "2", "1.5ms", "250ms", "tools")
    assert headline(now, before) == "10.0 req/s  33 requests  4 connections  2 workers  configuration 3  headgate 1.0"


def test_a_gateway_that_began_anew_has_no_negative_rates() -> None:
    before, now = look(0), look(2)
    now.state["routes"][0]["requests"] = 1
    assert rows("routes", now, before)[-1][1] in ("-", "0.0")
    assert "-" in next(row for row in rows("routes", now, before) if row[0] == "default/busy")[1]


def test_keys_with_what_they_have_spent_today() -> None:
    assert rows("keys", look(0)) == [
        ("ci", "research", "active", "7", "42", "$0.25", "25 dollars/month"),
        ("old", "-", "revoked", "0", "0", "-", "-"),
    ]


def test_errors_of_the_request_log_or_of_routes() -> None:
    assert rows("errors", look(0)) == [
        ("12:00:05", "502", "3.0ms", "GET /a", "default/busy", "refused"),
        ("12:00:06", "none", "3.0ms", "tools/call", "-", "MCP"),
    ]
    assert [row[1] for row in rows("errors", look(0, missing={"errors": "there is no request log"}))] == [
        "2x 4xx, 1x 5xx", "3x 4xx, 0x 5xx",
    ]  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_rows_are_as_wide_as_their_heads(view: str) -> None:
    for found in (rows(view, look(0)), rows(view, TopLook())):
        assert {len(row) for row in found} <= {len(HEADS[view])}
