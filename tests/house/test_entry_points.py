"""Entry points of shared memory, limits and logs refuse what they cannot use, and crash nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headgate_drivers.log import added_fields, is_logged, text_value
from headgate_drivers.shared import pay
from headgate_engine.context.redact import HiddenParameter, redacted
from headgate_engine.context.request import Reply
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.log.access import AccessLogFormat
from headgate_engine.log.labels import label_value, route_labels
from headgate_engine.log.meter import BindMeter
from headgate_engine.log.model_meter import ModelMeter
from headgate_engine.log.records import RecordFormat, RecordSink
from headgate_engine.log.text import json_value
from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.histogram import Histogram, RequestSeries, snapshot
from headgate_engine.shared.money import Money, slot_dollars
from headgate_engine.shared.segment import Segment, other_key
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep, PromptTokenStep

SEGMENT = Segment.create()
ENTRIES: tuple[Callable[..., Any], ...] = (
    SlotClaims, Counter, Gauge, Histogram, RequestSeries, Money, TokenBucket, snapshot, slot_dollars, other_key, Segment.attach,
    SEGMENT.limit_series, AccessLogFormat, is_logged, added_fields, BindMeter, ModelMeter, label_value,
    route_labels, RecordFormat, HiddenParameter, redacted, json_value, text_value, LocalRateLimitStep, PromptTokenStep,
    Counter(SEGMENT, b"c\0").add, Gauge(SEGMENT, b"g\0").set, pay,
    SlotClaims(SEGMENT, b"k").offer, TokenBucket(SEGMENT, b"b", 1, 1, 1).take_at, Histogram(SEGMENT, b"h\0", (1,)).observe,
)  # fmt: skip


@pytest.mark.parametrize("value", [None, object(), 1.5j])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: getattr(entry, "__qualname__", str(entry)))
def test_what_is_of_no_use_is_a_type_error(entry: Callable[..., Any], value: object) -> None:
    for count in (1, 2, 3, 4, 5):
        with pytest.raises(TypeError):
            entry(*[value] * count)


@pytest.mark.parametrize("made", [Counter, Gauge, Money, SlotClaims])
def test_a_segment_with_a_key_of_another_type_is_a_type_error(made: Callable[..., Any]) -> None:
    for key in (None, "text", 7):
        with pytest.raises(TypeError):
            made(SEGMENT, key)


def test_a_step_without_a_reply_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        LocalRateLimitStep(SEGMENT, (), None)  # type: ignore[arg-type]
    LocalRateLimitStep(SEGMENT, (), Reply(429))
    with pytest.raises(TypeError):
        RecordSink(None, None)  # type: ignore[arg-type]
