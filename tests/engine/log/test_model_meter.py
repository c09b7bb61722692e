"""Metrics of calls of models: types of errors, and what happens without room."""

from __future__ import annotations

import pytest

from headgate_drivers.log import count_model_call
from headgate_engine.context.request import TokenUsage
from headgate_engine.log.labels import label
from headgate_engine.log.model_meter import MAX_ERRORS, OTHER_ERROR, ModelMeter
from headgate_engine.shared.histogram import HistogramValue, snapshot
from headgate_engine.shared.segment import Segment

DURATION = "gw_gen_ai_server_request_duration"


@pytest.fixture
def full() -> Segment:
    return Segment.create(series_limit=0)


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


def durations(segment: Segment) -> dict[str, int]:
    """Numbers of observations by labels."""
    found = {}
    for sample in snapshot(segment):
        if sample.family == DURATION:
            assert isinstance(sample.value, HistogramValue)
            found[sample.labels] = sum(sample.value.counts)
    return found


def test_errors_have_series_of_their_own() -> None:
    segment = Segment.create()
    meter = ModelMeter(segment, 'm="x"')
    for error in ("", "429", "", "timeout"):
        count_model_call(meter, 1_000_000, error)
    assert durations(segment) == {
        'error_type="",m="x"': 2, 'error_type="429",m="x"': 1, 'error_type="timeout",m="x"': 1,
    }  # fmt: skip


def test_the_number_of_error_types_is_bounded() -> None:
    segment = Segment.create()
    meter = ModelMeter(segment, 'm="x"')
    for status in range(400, 400 + MAX_ERRORS + 5):
        count_model_call(meter, 1, str(status))
    found = durations(segment)
    assert len(found) == MAX_ERRORS + 1
    assert found[f'error_type="{OTHER_ERROR}",m="x"'] == 5
