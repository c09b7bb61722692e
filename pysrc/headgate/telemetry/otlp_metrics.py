"""Metrics as messages of OTLP: https://github.com/open-telemetry/opentelemetry-proto, metrics/v1/metrics.proto.

Counters and histograms are cumulative since the start of the gateway. Names and labels are those of the metrics page.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from headgate.dialect.protobuf_wire import double, fixed64, message, number, packed, signed
from headgate.telemetry.families import FAMILIES, Family
from headgate.telemetry.metrics import labels_of, removed
from headgate_engine.shared.exemplars import FoundExemplar
from headgate_engine.shared.histogram import NATIVE_SCHEMA, HistogramValue, NativeBuckets, Sample

# Field of Metric by the kind of a family, and that of exponential histograms.
GAUGE, SUM, HISTOGRAM, EXPONENTIAL = 5, 7, 9, 10
CUMULATIVE: Final = 2
UNITS: Final = (("_seconds", "s"), ("_bytes", "By"), ("_usd", "{USD}"))
# Bytes of a part: collectors take 4 MiB in one message.
PART_BYTES: Final = 1 << 20
NS_PER_S: Final = 1_000_000_000


class MetricsForm(NamedTuple):
    """How metrics are written. `started_ns`, `now_ns`: times of day. `native`: histograms have exponential buckets,
    where they have such. `remove`: names of families that are left out."""

    started_ns: int
    now_ns: int
    native: bool = False
    remove: tuple[str, ...] = ()


class MetricsPart(NamedTuple):
    """Some families: fields of ScopeMetrics, and how many points of data there are."""

    content: bytes
    points: int


def parts(samples: Iterable[Sample], form: MetricsForm) -> Iterator[MetricsPart]:
    """Yield the metrics in parts of about a MiB, families in the order of the table."""
    by_family: dict[str, list[Sample]] = {}
    for sample in samples:
        by_family.setdefault(sample.family, []).append(sample)
    content, count = bytearray(), 0
    for family in FAMILIES:
        found = by_family.get(family.name)
        if not found or removed(family.name, form.remove):
            continue
        points, size = [], 0
        for sample in sorted(found, key=lambda item: item.labels):
            points.append(sample)
            size += _about(sample)
            if size >= PART_BYTES:
                content += message(2, _metric(family, points, form))
                yield MetricsPart(bytes(content), count + len(points))
                content, count, points, size = bytearray(), 0, [], 0
        if points:
            content += message(2, _metric(family, points, form))
            count += len(points)
        if len(content) >= PART_BYTES:
            yield MetricsPart(bytes(content), count)
            content, count = bytearray(), 0
    if count:
        yield MetricsPart(bytes(content), count)


def _about(sample: Sample) -> int:
    """Return about how many bytes a point takes."""
    value = sample.value
    counts = 16 * len(value.counts) if isinstance(value, HistogramValue) else 8
    return 2 * len(sample.labels) + counts + 24


def unit_of(family: Family) -> str:
    """Return the unit of a family as UCUM writes it, `1` without one."""
    name = family.name.removesuffix("_total")
    if name.startswith("gw_gen_ai_server"):
        return "s"
    return next((unit for suffix, unit in UNITS if name.endswith(suffix)), "1")


def _metric(family: Family, samples: list[Sample], form: MetricsForm) -> bytes:
    head = message(1, family.name.encode()) + message(2, family.help.encode()) + message(3, unit_of(family).encode())
    if family.kind != "histogram":
        points = b"".join(message(1, _number(sample, form, family.kind == "counter")) for sample in samples)
        if family.kind == "gauge":
            return head + message(GAUGE, points)
        return head + message(SUM, points + number(2, CUMULATIVE) + number(3, 1))
    values = [(sample.labels, sample.value) for sample in samples if isinstance(sample.value, HistogramValue)]
    if form.native and all(value.native is not None for _, value in values):
        points = b"".join(message(1, _exponential(labels, value, form)) for labels, value in values)
        return head + message(EXPONENTIAL, points + number(2, CUMULATIVE))
    points = b"".join(message(1, _histogram(labels, value, form)) for labels, value in values)
    return head + message(HISTOGRAM, points + number(2, CUMULATIVE))


def _times(form: MetricsForm, since: bool = True) -> bytes:
    return (fixed64(2, form.started_ns) if since else b"") + fixed64(3, form.now_ns)


def _attributes(tag: int, labels: str) -> bytes:
    """Return labels as attributes. An empty value is no attribute."""
    return b"".join(
        message(tag, message(1, name.encode()) + message(2, message(1, value.encode())))
        for name, value in labels_of(labels).items()
        if value
    )


def _number(sample: Sample, form: MetricsForm, since: bool) -> bytes:
    value = sample.value
    told = fixed64(6, value) if isinstance(value, int) else double(4, float(value))  # type: ignore[arg-type]
    return _attributes(7, sample.labels) + _times(form, since) + told


def _histogram(labels: str, value: HistogramValue, form: MetricsForm) -> bytes:
    counts = message(6, struct.pack(f"<{len(value.counts)}Q", *value.counts))
    bounds = message(7, struct.pack(f"<{len(value.bounds)}d", *value.bounds))
    total = fixed64(4, sum(value.counts)) + double(5, value.sum)
    marked = b"".join(_exemplar(8, one) for one in value.exemplars.values())
    return _attributes(9, labels) + _times(form) + total + counts + bounds + marked


def _exponential(labels: str, value: HistogramValue, form: MetricsForm) -> bytes:
    assert isinstance(value.native, NativeBuckets)
    total = fixed64(4, sum(value.counts)) + double(5, value.sum) + signed(6, NATIVE_SCHEMA)
    buckets = value.native.counts
    found = b""
    if buckets:
        # The bucket that Prometheus numbers by its upper end has the number of its lower end here.
        first, last = min(buckets), max(buckets)
        found = message(8, signed(1, first - 1) + packed(2, (buckets.get(at, 0) for at in range(first, last + 1))))
    marked = b"".join(_exemplar(11, one) for one in value.exemplars.values())
    zero = fixed64(7, value.native.zero_count) + found + marked + double(14, value.native.zero_threshold)
    return _attributes(1, labels) + _times(form) + total + zero


def _exemplar(tag: int, found: FoundExemplar) -> bytes:
    ids = message(4, bytes.fromhex(found.span_id)) + message(5, bytes.fromhex(found.trace_id))
    return message(tag, fixed64(2, int(found.time_s * NS_PER_S)) + double(3, found.value) + ids)
