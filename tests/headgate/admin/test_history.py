"""The ring of an hour's traffic."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from headgate.admin.history import KEPT, MAX_NAMES, MAX_REMEMBERED, TrafficHistory, point
from headgate.telemetry.families import BUCKETS
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.histogram import Histogram, snapshot
from headgate_engine.shared.segment import Segment


def test_a_point_has_the_sums_of_all_traffic() -> None:
    segment = Segment.create()
    try:
        for status, count in (("200", 5), ("404", 2), ("503", 1)):
            Counter(segment, series_key("gw_requests_total", {"route": "a", "status": status})).add(count)
        Histogram(segment, series_key("gw_request_duration_seconds", {"route": "a"}), BUCKETS["H"]).observe(0.01)
        found, counts = point(snapshot(segment), 7)
        assert sum(found.pop("counts")) == 1
        assert found.pop("routes") == {"a": [8, 2, 1, None, None]}
        assert found.pop("backends") == {"": [8, 2, 1, None, None]}
        assert found.pop("models") == {}
        assert found.pop("cut") == []
        assert found == {"time": 7, "requests": 8, "clientErrors": 2, "serverErrors": 1, "tokens": 0, "costUsd": None}
        latency = Histogram(segment, series_key("gw_request_duration_seconds", {"route": "a"}), BUCKETS["H"])
        for _ in range(20):
            latency.observe(2)
        later, _ = point(snapshot(segment), 8, counts)
        p50, p95 = later["routes"]["a"][3:]
        assert 1000 < p50 < p95 < 2500, "the request of 10 ms was before"
        none, _ = point(snapshot(segment), 9, point(snapshot(segment), 8)[1])
        assert none["routes"]["a"][3:] == [None, None]
    finally:
        segment.close()


def test_of_routes_and_models_the_busiest_are_kept() -> None:
    segment = Segment.create()
    try:
        for number in range(MAX_REMEMBERED + 5):
            Counter(segment, series_key("gw_requests_total", {"route": f"r{number}", "status": "200"})).add(number + 1)
        model = {"gen_ai_system": "openai", "gen_ai_request_model": "m"}
        for error in ("", "503"):
            key = series_key("gw_gen_ai_server_request_duration", {"error_type": error, **model})
            Histogram(segment, key, BUCKETS["D"]).observe(0.01)
        found, counts = point(snapshot(segment), 7)
        for kind in ("routes", "backends"):
            assert len(counts[kind]) <= MAX_REMEMBERED
    finally:
        segment.close()
    assert len(found["routes"]) == MAX_NAMES
    assert "r0" not in found["routes"]
    # Of a route that is missing nothing is known; there is one backend, and one model.
    assert found["cut"] == ["routes"]
    assert found["models"] == {"openai m": [2, 1, 0, None]}


def test_the_ring_keeps_an_hour() -> None:
    segment = Segment.create()
    running: Any = SimpleNamespace(process=SimpleNamespace(segment=segment))
    times = iter(range(KEPT + 3))
    history = TrafficHistory(running, lambda: next(times))
    try:
        for _ in range(KEPT + 3):
            history.add()
    finally:
        segment.close()
    assert [history.points[0].time_ms, history.points[-1].time_ms, len(history.points)] == [3, KEPT + 2, KEPT]
    assert json.loads(history.points[0].text)["time"] == 3
