"""The endpoints of the page that need no running gateway."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.admin import api, mcp_targets
from headgate.admin.api import ui_rows
from headgate.admin.running import TrafficPoint
from headgate.admin.web import AdminRequest, AdminResponse
from headgate.config.load import TextSource, load

TEXT = """
gateways: {default: {port: 4000}}
routes:
- name: own
  matches: [{path: {exact: /own}}]
  backends:
  - ai: {name: main, provider: {openAI: {}}}
    policies: {ai: {promptGuard: {response: [{regex: {builtins: [ssn]}}]}}}
- name: tools
  matches: [{path: {exact: /tools}}]
  backends:
  - mcp: {targets: [{name: a, mcp: {host: "http://127.0.0.1:2/mcp"}}]}
    policies: {mcpGuardrails: {processors: [{kind: remote, host: "127.0.0.1:3", methods: {"tools/call": full}}]}}
"""


def test_points_are_those_behind_a_time() -> None:
    running: Any = SimpleNamespace(points=[TrafficPoint(time, b'{"time":%d}' % time) for time in (1, 2, 3)])
    [row] = [one for one in ui_rows(running, ()) if one.path == "/ui/api/history"]
    for since, times in (("", [1, 2, 3]), ("2", [3]), ("3", []), ("x", [1, 2, 3])):
        answer = asyncio.run(row.handler(AdminRequest("GET", row.path, {"since": since}, "localhost", {})))
        assert isinstance(answer, AdminResponse)
        assert answer.content_type == "application/json"
        assert json.loads(answer.body) == {"everySeconds": 15, "points": [{"time": one} for one in times]}
    running.points = None
    assert json.loads(asyncio.run(row.handler(AdminRequest("GET", row.path, {}, "localhost", {}))).body)["points"] == []


def test_rows_of_guards_that_are_cut_off_are_told_and_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    running: Any = SimpleNamespace(gateway=load(TextSource(TEXT), environ={}).gateway)
    [row] = [one for one in ui_rows(running, ()) if one.path == "/ui/api/guards"]

    def guards(**query: str) -> dict[str, Any]:
        answer = asyncio.run(row.handler(AdminRequest("GET", row.path, query, "localhost", {})))
        assert isinstance(answer, AdminResponse)
        return dict(json.loads(answer.body))

    whole = guards()
    of_tools = [one for one in whole["rows"] if one["route"] == "default/tools"]
    assert whole["cut"] is False
    assert 0 < len(of_tools) < len(whole["rows"])
    monkeypatch.setattr(api, "MAX_COVERAGE", len(whole["rows"]))
    assert guards() == whole
    monkeypatch.setattr(api, "MAX_COVERAGE", len(of_tools))
    assert guards() == {"rows": whole["rows"][: len(of_tools)], "cut": True}
    assert guards(route="default/tools") == {"rows": of_tools, "cut": False}
    assert guards(route="none") == {"rows": [], "cut": False}


def test_errors_of_mcp_targets_need_a_login(monkeypatch: pytest.MonkeyPatch) -> None:
    async def told() -> list[dict[str, Any]]:
        times = {"opened": 0, "answered": 0, "failed": 1, "erred": 1}
        return [{"backend": place.backend, "target": "a", "error": "no order of Ann", **times}]

    monkeypatch.setattr(mcp_targets, "snapshot", lambda _segment: [])
    running: Any = SimpleNamespace(
        gateway=load(TextSource(TEXT), environ={}).gateway,
        process=SimpleNamespace(worker_mcp_targets=told, segment=None),
    )
    [place] = mcp_targets.mcp_places(running.gateway)
    for offers, error in (((), None), (("store",), "no order of Ann")):
        [row] = [one for one in ui_rows(running, offers) if one.path == "/ui/api/mcp"]
        answer = asyncio.run(row.handler(AdminRequest("GET", row.path, {}, "localhost", {})))
        assert isinstance(answer, AdminResponse)
        [found] = json.loads(answer.body)["targets"]
        assert (found["state"], found["error"]) == ("down", error)
