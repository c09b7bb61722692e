"""Metrics in protobuf, read back by the library."""

from __future__ import annotations

import pytest
from tests.headgate.admin.metrics_protobuf_rig import families

from headgate.admin.metrics_protobuf import CONTENT_TYPE, encode, prefers_protobuf
from headgate_engine.shared.histogram import HistogramValue, Sample

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


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("application/json", False),
        (CONTENT_TYPE, True),
        ("application/protobuf", True),
        ("Application/X-Protobuf", True),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
         "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", True),
        ("application/openmetrics-text;q=0.9,application/protobuf;q=0.2,text/plain;q=0.5", False),
        ("application/protobuf;q=0.5,*/*;q=0.5", False),
        ("application/protobuf;q=0", False),
        ("application/protobuf;q=nan", False),
        ("application/protobuf;q=often", False),
    ],
)
def test_who_wants_protobuf(accept: str, wanted: bool) -> None:
    assert prefers_protobuf(accept) is wanted
