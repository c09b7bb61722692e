"""Request metrics: what a plan remembers, and what happens without room."""

from __future__ import annotations

import pytest

from headgate_engine.log.meter import BindMeter
from headgate_engine.shared.histogram import snapshot
from headgate_engine.shared.segment import Segment


@pytest.fixture
def full() -> Segment:
    return Segment.create(series_limit=0)


def test_ports_without_room_are_counted_together(full: Segment) -> None:
    for port in range(3):
        BindMeter(full, f'bind="bind/{port}",protocol="http"')
    assert {(sample.family, sample.labels) for sample in snapshot(full)} == {
        (f"gw_downstream_{name}_total", 'bind="other",protocol="other"')
        for name in ("connections", "refused", "received_bytes", "sent_bytes")
    }
    assert full.stats()["series_refused"] == 12
