"""Request metrics: what a plan remembers, and what happens without room."""

from __future__ import annotations

import pytest

from headgate_engine.context.request import TokenUsage
from headgate_engine.log.meter import BindMeter, ModelMeter, label
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


def test_models_without_room_are_counted_together(full: Segment) -> None:
    for model in ("a", "b"):
        meter = ModelMeter(full, label("gen_ai_request_model", model))
        meter.count_tokens(TokenUsage(3, 4))
        meter.count_cost(5)
        meter.count_stream(6, 7)
    found = {(sample.family, sample.labels): sample.value for sample in snapshot(full)}
    assert found["gw_gen_ai_client_cost_usd_total", 'gen_ai_request_model="other"'] * 10**12 == 10
    tokens = found["gw_gen_ai_client_token_usage", 'gen_ai_token_type="other",gen_ai_request_model="other"']
    assert sum(tokens.counts) == 4
    assert tokens.sum == 14


def test_label_values_are_escaped() -> None:
    assert label("a", 'b\\"\n') == 'a="b\\\\\\"\\n"'
