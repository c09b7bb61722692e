"""`gw_mcp_requests_total`."""

from __future__ import annotations

from typing import Any

from headgate.pipeline.mcp_requests import MAX_NAME, MAX_NAMES, McpRequests
from headgate.telemetry.metrics import render
from headgate_engine.shared.histogram import snapshot
from headgate_engine.shared.segment import Segment


class Told:
    """A note that has ended, of a call at `place`."""

    def __init__(self, method: str, kind: str | None = None, name: str | None = None, failed: bool = False) -> None:
        self.method, self.kind, self.server, self.name, self.failed = method, kind, "t", name, failed


class Call:
    def __init__(self, place: object = 1) -> None:
        self.place = place

    def route_labels(self) -> str:
        return f'route="r{self.place}"'


def counted(*told: Any, place: object = 1) -> list[str]:
    segment = Segment.create()
    found = McpRequests(segment)
    for one in told:
        found.count(Call(place), one)  # type: ignore[arg-type]
    return [line for line in render(snapshot(segment)).splitlines() if line.startswith("gw_mcp_requests_total{")]


def test_labels() -> None:
    echo = Told("tools/call", "tool", "echo")
    assert counted(echo, echo) == [
        'gw_mcp_requests_total{method="tools/call",resource_type="tool",server="t",resource="echo",route="r1"} 2'
    ]
    [line] = counted(echo, place=None)
    assert 'route="rNone"' in line
    assert len(counted(echo, Told("tools/call", "tool", "add"), Told("ping"))) == 3


def test_what_clients_make_up_is_no_label() -> None:
    for told in (
        Told("made/up"), Told("tools/call", "tool", "made-up", failed=True), Told("tasks/get", "task", "made-up"),
        Told("resources/read", "resource", "made-up:" + "x" * MAX_NAME),
    ):  # fmt: skip
        [line] = counted(told)
        assert "made" not in line
    lines = counted(*(Told("resources/read", "resource", f"x:{index}") for index in range(MAX_NAMES + 20)))
    assert len(lines) == MAX_NAMES + 1
    assert [line for line in lines if 'resource="other"' in line and line.endswith(" 20")]
