"""What tests of metrics protobuf and others share."""

from __future__ import annotations

from typing import Any

from headgate.dialect.protobuf import MessageField, classes_of, file_of

# github.com/prometheus/client_model, io/prometheus/client/metrics.proto
CLASSES = classes_of(file_of("metrics.proto", "io.prometheus.client", {
    "LabelPair": [MessageField(1, "name", "string"), MessageField(2, "value", "string")],
    "Gauge": [MessageField(1, "value", "double")],
    "Counter": [MessageField(1, "value", "double")],
    "Timestamp": [MessageField(1, "seconds", "int64"), MessageField(2, "nanos", "int32")],
    "Exemplar": [MessageField(1, "label", "LabelPair", "repeated"), MessageField(2, "value", "double"), MessageField(3, "timestamp", "Timestamp")],
    "Bucket": [MessageField(1, "cumulative_count", "uint64"), MessageField(2, "upper_bound", "double"), MessageField(3, "exemplar", "Exemplar")],
    "BucketSpan": [MessageField(1, "offset", "sint32"), MessageField(2, "length", "uint32")],
    "Histogram": [MessageField(1, "sample_count", "uint64"), MessageField(2, "sample_sum", "double"), MessageField(3, "bucket", "Bucket", "repeated"),
                  MessageField(5, "schema", "sint32"), MessageField(6, "zero_threshold", "double"), MessageField(7, "zero_count", "uint64"),
                  MessageField(12, "positive_span", "BucketSpan", "repeated"), MessageField(13, "positive_delta", "sint64", "repeated"),
                  MessageField(16, "exemplars", "Exemplar", "repeated")],
    "Metric": [MessageField(1, "label", "LabelPair", "repeated"), MessageField(2, "gauge", "Gauge"), MessageField(3, "counter", "Counter"),
               MessageField(7, "histogram", "Histogram")],
    "MetricFamily": [MessageField(1, "name", "string"), MessageField(2, "help", "string"), MessageField(3, "type", "MetricFamily.Type"),
                     MessageField(4, "metric", "Metric", "repeated")],
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
