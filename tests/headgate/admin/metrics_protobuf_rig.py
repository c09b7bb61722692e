"""What tests of metrics protobuf and others share."""

from __future__ import annotations

from typing import Any

from headgate.dialect.protobuf import Field, classes_of, file_of

# github.com/prometheus/client_model, io/prometheus/client/metrics.proto
CLASSES = classes_of(file_of("metrics.proto", "io.prometheus.client", {
    "LabelPair": [Field(1, "name", "string"), Field(2, "value", "string")],
    "Gauge": [Field(1, "value", "double")],
    "Counter": [Field(1, "value", "double")],
    "Bucket": [Field(1, "cumulative_count", "uint64"), Field(2, "upper_bound", "double")],
    "Histogram": [Field(1, "sample_count", "uint64"), Field(2, "sample_sum", "double"), Field(3, "bucket", "Bucket", "repeated")],
    "Metric": [Field(1, "label", "LabelPair", "repeated"), Field(2, "gauge", "Gauge"), Field(3, "counter", "Counter"),
               Field(7, "histogram", "Histogram")],
    "MetricFamily": [Field(1, "name", "string"), Field(2, "help", "string"), Field(3, "type", "MetricFamily.Type"),
                     Field(4, "metric", "Metric", "repeated")],
}, {"MetricFamily.Type": ["COUNTER", "GAUGE", "SUMMARY", "UNTYPED", "HISTOGRAM"]}))  # fmt: skip


def families(data: bytes) -> list[Any]:
    """The messages of a delimited stream."""
    found, at = [], 0
    while at < len(data):
        length, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append(CLASSES["MetricFamily"].FromString(data[at : at + length]))
        at += length
    return found
