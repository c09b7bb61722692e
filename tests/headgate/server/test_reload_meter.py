"""Metrics of reloads."""

from __future__ import annotations

import time

from headgate.server.reload_meter import ReloadMeter
from headgate_engine.shared.histogram import HistogramValue, snapshot
from headgate_engine.shared.segment import Segment


def values(segment: Segment) -> dict[str, object]:
    return {sample.family + sample.labels: sample.value for sample in snapshot(segment)}


def test_the_first_configuration_is_no_reload() -> None:
    segment = Segment.create()
    meter = ReloadMeter(segment)
    meter.in_force()
    found = values(segment)
    assert found["gw_config_synchronized"] == 1
    assert found['gw_config_reloads_totalresult="success"'] == 0
    assert abs(found["gw_config_last_success_timestamp_seconds"] - time.time()) < 5  # type: ignore[operator]


def test_reloads_are_counted_by_their_result_and_good_ones_timed() -> None:
    segment = Segment.create()
    meter = ReloadMeter(segment)
    meter.begin()
    meter.in_force()
    meter.begin()
    meter.failed()
    found = values(segment)
    assert (found['gw_config_reloads_totalresult="success"'], found['gw_config_reloads_totalresult="failure"']) == (1, 1)
    assert found["gw_config_synchronized"] == 0
    duration = found["gw_config_reload_duration_seconds"]
    assert isinstance(duration, HistogramValue)
    assert sum(duration.counts) == 1
    meter.unchanged()
    assert values(segment)["gw_config_synchronized"] == 1
