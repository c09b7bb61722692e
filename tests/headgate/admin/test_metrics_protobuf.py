"""Metrics in protobuf, read back by the library."""

from __future__ import annotations

from typing import Any

import pytest
from tests.headgate.admin.metrics_protobuf_rig import families

from headgate.admin.metrics_protobuf import encode
from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.histogram import NATIVE_SCHEMA, HistogramValue, NativeBuckets, Sample

COUNTER, GAUGE, HISTOGRAM = 0, 1, 4




def test_every_kind_is_read_back() -> None:
    data = encode(
        [
            Sample("gw_requests_total", 'a="1",b="x\\"y\\\\z\\n"', "counter", 5),
            Sample("gw_requests_total", 'a="0"', "counter", 0),
            Sample("gw_workers", "", "gauge", 300),
            Sample("gw_request_duration_seconds", 'r="q"', "histogram", HistogramValue((0.1, 1.0), (2, 1, 1), 3.5)),
            Sample("not_ours", "", "counter", 5),
        ]
    )
    found = {one.name: one for one in families(data)}
    assert set(found) == {"gw_requests_total", "gw_workers", "gw_request_duration_seconds"}
    requests = found["gw_requests_total"]
    assert (requests.type, requests.help) == (COUNTER, "Requests, counted when their response ended.")
    assert [({one.name: one.value for one in metric.label}, metric.counter.value) for metric in requests.metric] == [
        ({"a": "0"}, 0.0), ({"a": "1", "b": 'x"y\\z\n'}, 5.0),
    ]  # fmt: skip
    assert (found["gw_workers"].type, found["gw_workers"].metric[0].gauge.value) == (GAUGE, 300.0)
    duration = found["gw_request_duration_seconds"]
    histogram = duration.metric[0].histogram
    assert (duration.type, histogram.sample_count, histogram.sample_sum) == (HISTOGRAM, 4, 3.5)
    assert [(one.cumulative_count, one.upper_bound) for one in histogram.bucket] == [(2, 0.1), (3, 1.0)]


def test_removed_families_are_left_out() -> None:
    assert encode([Sample("gw_workers", "", "gauge", 3)], ["workers"]) == b""


def native(counts: dict[int, int], zeros: int = 0) -> HistogramValue:
    total = sum(counts.values()) + zeros
    return HistogramValue((0.1,), (total, 0), 1.5, NativeBuckets(2.0**-20, zeros, counts))


@pytest.mark.parametrize("counts", [
    {}, {0: 3}, {-159: 1}, {-3: 2, -2: 5, 0: 1, 3: 4, 4: 4}, {-3: 2, 1: 7, 90: 1, 91: 1, 137: 1000000},
])  # fmt: skip
@pytest.mark.parametrize("classic", [True, False])
def test_native_histograms_are_read_back(counts: dict[int, int], classic: bool) -> None:
    samples = [Sample("gw_request_duration_seconds", "", "histogram", native(counts, 2))]
    histogram = families(encode(samples, classic=classic))[0].metric[0].histogram
    assert (histogram.schema, histogram.zero_threshold, histogram.zero_count) == (NATIVE_SCHEMA, 2.0**-20, 2)
    assert histogram.sample_count == sum(counts.values()) + 2
    assert len(histogram.bucket) == classic
    found, at, count, deltas = {}, 0, 0, iter(histogram.positive_delta)
    for span in histogram.positive_span:
        at += span.offset
        for _ in range(span.length):
            count += next(deltas)
            found[at] = count
            at += 1
    assert next(deltas, None) is None
    assert {number: count for number, count in found.items() if count} == counts
    assert len(histogram.positive_span) >= 1, "known for a native one, also without observations"


def test_histograms_without_native_buckets_always_have_the_others() -> None:
    samples = [Sample("gw_request_duration_seconds", "", "histogram", HistogramValue((0.1, 1.0), (2, 1, 1), 3.5))]
    assert len(families(encode(samples, classic=False))[0].metric[0].histogram.bucket) == 2


MARKED = {0: FoundExemplar("1" * 32, "a" * 16, 0.05, 1700000000.25), 1: FoundExemplar("2" * 32, "b" * 16, 7.5, 1700000001.5)}


def told(exemplar: Any) -> FoundExemplar:
    labels = {one.name: one.value for one in exemplar.label}
    return FoundExemplar(
        labels["trace_id"], labels["span_id"], exemplar.value, exemplar.timestamp.seconds + exemplar.timestamp.nanos / 1e9
    )


def test_classic_buckets_have_exemplars() -> None:
    value = HistogramValue((0.1,), (1, 1), 7.55, None, MARKED)
    [family] = families(encode([Sample("gw_request_duration_seconds", "", "histogram", value)]))
    first, last = family.metric[0].histogram.bucket
    assert (told(first.exemplar), told(last.exemplar)) == (MARKED[0], MARKED[1])
    assert (last.cumulative_count, last.upper_bound) == (2, float("inf"))


def test_native_histograms_have_exemplars() -> None:
    value = HistogramValue((0.1,), (1, 1), 7.55, NativeBuckets(2.0**-20, 0, {-34: 1, 24: 1}), MARKED)
    [family] = families(encode([Sample("gw_request_duration_seconds", "", "histogram", value)], classic=False))
    assert [told(one) for one in family.metric[0].histogram.exemplars] == list(MARKED.values())
