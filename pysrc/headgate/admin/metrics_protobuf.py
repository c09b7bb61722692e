"""Metrics as length-delimited io.prometheus.client.MetricFamily messages
(https://github.com/prometheus/client_model), and the content negotiation for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headgate.admin.meters import labels_of
from headgate.dialect.protobuf_wire import double, message, number, varint
from headgate.telemetry.families import FAMILIES
from headgate.telemetry.metrics import removed
from headgate_engine.shared.histogram import HistogramValue, Sample

CONTENT_TYPE: Final = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricSet;encoding=delimited;version=1.0.0"
)
KINDS: Final = ("application/vnd.google.protobuf", "application/protobuf", "application/x-protobuf")
TEXT_KINDS: Final = ("text/plain", "text/*", "*/*")
# The value of MetricType, and the number of the field in Metric for that type.
TYPES: Final = {"counter": (0, 3), "gauge": (1, 2), "histogram": (4, 7)}


def prefers_protobuf(accept: str) -> bool:
    """Return True if an Accept header (RFC 9110 section 12.5.1) prefers protobuf to text by its q values."""
    best = {True: 0.0, False: 0.0}
    for entry in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in entry.split(";"))
        if kind not in KINDS and kind not in TEXT_KINDS:
            continue
        quality = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                quality = _quality(value.strip())
        best[kind in KINDS] = max(best[kind in KINDS], quality)
    return best[True] > best[False]


def _quality(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return 0.0
    return found if 0.0 <= found <= 1.0 else 0.0


def encode(samples: Iterable[Sample], remove: Iterable[str] = ()) -> bytes:
    """Return the metric families in the order of the table, each with its length as prefix."""
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
            body += message(4, _labels(sample.labels) + message(field, _value(sample)))
        out += varint(len(body)) + body
    return bytes(out)


def _labels(text: str) -> bytes:
    return b"".join(
        message(1, message(1, name.encode()) + message(2, value.encode())) for name, value in labels_of(text).items()
    )


def _value(sample: Sample) -> bytes:
    value = sample.value
    if not isinstance(value, HistogramValue):
        return double(1, float(value))
    total, buckets = 0, b""
    for bound, count in zip(value.bounds, value.counts, strict=False):
        total += count
        buckets += message(3, number(1, total) + double(2, bound))
    return number(1, sum(value.counts)) + double(2, value.sum) + buckets
