"""MCP targets, from what the workers know and what they have counted together."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.admin import mcp_targets
from headgate.admin.mcp_targets import McpView, mcp_places, mcp_rows
from headgate.admin.meters import Meters
from headgate.config.load import TextSource, load
from headgate.telemetry.families import BUCKETS
from headgate.telemetry.metrics import label_text
from headgate_engine.shared.histogram import HistogramValue, Sample

BOUNDS = BUCKETS["H"]
TEXT = """
gateways: {default: {port: 3000}}
mcp: {targets: [{name: a, stdio: {cmd: a, args: [secret]}}, {name: b, mcp: {host: "http://127.0.0.1:2/mcp"}}]}
"""


def told(target: str, **more: Any) -> dict[str, Any]:
    nothing = {"name": None, "version": None, "protocol": None, "error": None, "opened": 0, "answered": 0, "failed": 0, "erred": 0}
    return {"backend": "mcp", "target": target, **nothing, **more}


def series(outcome: str, server: str, *counts: int) -> Sample:
    labels = label_text({"outcome": outcome, "backend": "mcp", "server": server})
    whole = counts + (0,) * (len(BOUNDS) + 1 - len(counts))
    return Sample("gw_mcp_target_call_duration_seconds", labels, "histogram", HistogramValue(BOUNDS, whole, 1.0))


def rows(samples: list[Sample], *states: dict[str, Any]) -> list[dict[str, Any]]:
    found = mcp_rows(mcp_places(load(TextSource(TEXT)).gateway), Meters(samples), states)
    assert "secret" not in str(found)
    return found


def test_a_target_that_nobody_has_called_is_unknown() -> None:
    [first, second] = rows([])
    assert (first["target"], first["kind"], first["address"]) == ("a", "process", "a")
    assert (second["target"], second["kind"], second["address"]) == ("b", "HTTP", "127.0.0.1:2/mcp")
    assert (first["state"], first["calls"], first["p50Ms"], first["answered"], first["error"]) == ("unknown", 0, None, None, None)


def test_who_has_seen_something_last_is_right() -> None:
    old = told("b", name="n", version="1", protocol="2025-06-18", opened=10, answered=50, error="then", erred=20)
    new = told("b", name="n", version="2", protocol="2025-11-25", opened=11, answered=30, failed=40, error="now", erred=40)
    row = rows([], new, old)[1]
    assert (row["state"], row["version"], row["protocol"], row["opened"]) == ("up", "2", "2025-11-25", 11)
    assert (row["error"], row["erred"], row["answered"], row["failed"]) == ("now", 40, 50, 40)
    assert rows([], new, told("b", answered=39))[1]["state"] == "down"


def test_calls_of_all_outcomes_add_up_and_have_one_latency() -> None:
    row = rows([series("ok", "b", 0, 8), series("error", "b", 0, 1), series("failed", "b", 0, 0, 0, 0, 0, 1), series("ok", "a", 3)])[1]
    assert (row["calls"], row["errors"], row["failures"]) == (10, 1, 1)
    low, high = BOUNDS[0] * 1000, BOUNDS[1] * 1000
    assert low < row["p50Ms"] < high
    assert BOUNDS[4] * 1000 < row["p95Ms"] <= BOUNDS[5] * 1000


def test_pages_that_ask_at_once_share_what_workers_have_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def answer() -> list[dict[str, Any]]:
        asked.append("workers")
        await asyncio.sleep(0)
        return [told("a", answered=len(asked))]

    def places(gateway: Any) -> Any:
        asked.append("configuration")
        return mcp_places(gateway)

    now = [100.0]
    monkeypatch.setattr(mcp_targets, "snapshot", lambda _segment: [])
    monkeypatch.setattr(mcp_targets, "mcp_places", places)
    monkeypatch.setattr(mcp_targets, "time", SimpleNamespace(monotonic=lambda: now[0]))
    running: Any = SimpleNamespace(
        gateway=load(TextSource(TEXT)).gateway, process=SimpleNamespace(worker_mcp_targets=answer, segment=None)
    )

    async def look() -> None:
        view = McpView(running)
        first, second = await asyncio.gather(view.rows(), view.rows())
        assert first == second
        assert asked == ["workers", "configuration"]
        now[0] += mcp_targets.FRESH_SECONDS
        assert (await view.rows())[0]["answered"] == 3
        assert asked == ["workers", "configuration", "workers"]

    asyncio.run(look())
