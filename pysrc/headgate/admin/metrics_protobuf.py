"""Metrics as length-delimited io.prometheus.client.MetricFamily messages
(https://github.com/prometheus/client_model), which alone have a place for native histograms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from headgate.dialect.protobuf_wire import double, message, number, packed, signed, varint, zigzag
from headgate.telemetry.families import FAMILIES
from headgate.telemetry.metrics import labels_of, removed
from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.histogram import NATIVE_SCHEMA, HistogramValue, NativeBuckets, Sample

CONTENT_TYPE: Final = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricSet;encoding=delimited;version=1.0.0"
)
# The value of MetricType, and the number of the field in Metric for that type.
TYPES: Final = {"counter": (0, 3), "gauge": (1, 2), "histogram": (4, 7)}
# Empty buckets between two others that are written down rather than beginning another span.
LONGEST_GAP: Final = 2


def encode(samples: Iterable[Sample], remove: Iterable[str] = (), classic: bool = True) -> bytes:
    """Return the metric families in the order of the table, each with its length as prefix.

    classic: histograms have the buckets of the families' bounds, as those without native ones always have.
    """
    remove = tuple(remove)
    by_family: dict[str, list[Sample]] = {}
    for sample in samples:
        by_family.setdefault(sample.family, []).append(sample)
    out = bytearray()
    for family in FAMILIES:
        found = by_family.get(family.name)
        if not found or removed(family.name, remove):
            continue
        kind, field = TYPES[family.kind]
        body = message(1, family.name.encode()) + message(2, family.help.encode()) + number(3, kind)
        for sample in sorted(found, key=lambda item: item.labels):
            body += message(4, _labels(sample.labels) + message(field, _value(sample, classic)))
        out += varint(len(body)) + body
    return bytes(out)


def _labels(text: str) -> bytes:
    return b"".join(
        message(1, message(1, name.encode()) + message(2, value.encode())) for name, value in labels_of(text).items()
    )


def _value(sample: Sample, classic: bool) -> bytes:
    value = sample.value
    if not isinstance(value, HistogramValue):
        return double(1, float(value))
    total, buckets = 0, b""
    classic = classic or value.native is None
    for at, (bound, count) in enumerate(zip(value.bounds, value.counts, strict=False)) if classic else ():
        total += count
        buckets += message(3, number(1, total) + double(2, bound) + _exemplar(3, value.exemplars.get(at)))
    last = value.exemplars.get(len(value.bounds))
    if classic and last is not None:
        buckets += message(3, number(1, sum(value.counts)) + double(2, math.inf) + _exemplar(3, last))
    native = b""
    if value.native is not None:
        native = _native(value.native) + b"".join(_exemplar(16, one) for one in value.exemplars.values())
    return number(1, sum(value.counts)) + double(2, value.sum) + buckets + native


def _exemplar(tag: int, found: FoundExemplar | None) -> bytes:
    """Return the field of an exemplar, b"" for none: its labels, value and time (google.protobuf.Timestamp)."""
    if found is None:
        return b""
    pairs = (("trace_id", found.trace_id), ("span_id", found.span_id))
    labels = b"".join(message(1, message(1, name.encode()) + message(2, text.encode())) for name, text in pairs)
    seconds = int(found.time_s)
    time = number(1, seconds) + number(2, int((found.time_s - seconds) * 1e9))
    return message(tag, labels + double(2, found.value) + message(3, time))


def _native(buckets: NativeBuckets) -> bytes:
    """Return the members of a native histogram: runs of buckets, and each count as its difference to the one before."""
    spans: list[list[int]] = []
    deltas: list[int] = []
    end = before = 0
    for at, count in buckets.counts.items():
        if not spans or at - end > LONGEST_GAP:
            spans.append([at - end, 0])
            end = at
        while end < at:
            deltas.append(-before)
            before, end = 0, end + 1
            spans[-1][1] += 1
        deltas.append(count - before)
        before, end = count, end + 1
        spans[-1][1] += 1
    # A histogram without observations is known for a native one by a span of no buckets.
    told = b"".join(message(12, signed(1, gap) + number(2, length)) for gap, length in spans or [[0, 0]])
    return (
        signed(5, NATIVE_SCHEMA) + double(6, buckets.zero_threshold) + number(7, buckets.zero_count) + told
        + packed(13, map(zigzag, deltas))
    )  # fmt: skip
