"""`gw_mcp_requests_total`."""

from __future__ import annotations

import json

from headgate.pipeline.mcp_requests import McpRequests
from headgate.telemetry.metrics import render
from headgate_engine.mcp.telemetry import MAX_NAME, MAX_NAMES, RequestTelemetry
from headgate_engine.peek.rpc import parse
from headgate_engine.shared.histogram import snapshot
from headgate_engine.shared.segment import Segment


class Call:
    """A request at `place`."""

    context = None

    def __init__(self, place: object) -> None:
        self.place = place

    def route_labels(self) -> str:
        return f'route="r{self.place}"'


class Asked:
    """A request about something, and whether it failed."""

    def __init__(self, method: str, params: dict[str, str] | None = None, failed: bool = False) -> None:
        self.text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()
        self.status = 400 if failed else 200


def counted(*asked: Asked, place: object = 1) -> list[str]:
    segment = Segment.create()
    counts = McpRequests(segment)
    for one in asked:
        RequestTelemetry(Call(place), parse(one.text), None, "t", counts).ended(one.status, b"{}")
    return [line for line in render(snapshot(segment)).splitlines() if line.startswith("gw_mcp_requests_total{")]


def test_labels() -> None:
    echo = Asked("tools/call", {"name": "echo"})
    assert counted(echo, echo) == [
        'gw_mcp_requests_total{method="tools/call",resource_type="tool",server="t",resource="echo",route="r1"} 2'
    ]
    [line] = counted(echo, place=None)
    assert 'route="rNone"' in line
    assert len(counted(echo, Asked("tools/call", {"name": "add"}), Asked("ping"))) == 3


def test_what_clients_make_up_is_no_label() -> None:
    for asked in (
        Asked("made/up"), Asked("tools/call", {"name": "made-up"}, failed=True), Asked("tasks/get", {"taskId": "made-up"}),
        Asked("resources/read", {"uri": "made-up:" + "x" * MAX_NAME}),
    ):  # fmt: skip
        [line] = counted(asked)
        assert "made" not in line
    lines = counted(*(Asked("resources/read", {"uri": f"x:{index}"}) for index in range(MAX_NAMES + 20)))
    assert len(lines) == MAX_NAMES + 1
    assert [line for line in lines if 'resource="other"' in line and line.endswith(" 20")]
