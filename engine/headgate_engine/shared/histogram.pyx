"""Histograms in shared memory, and the snapshot for the metrics page."""

from libc.math cimport floor, frexp, isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memset

from headgate_engine.shared.counters cimport HG_GET, HG_GET_UNSIGNED
from headgate_engine.shared.exemplars cimport exemplars_of
from headgate_engine.shared.segment cimport (
    SLOT_COUNTER, SLOT_EXEMPLARS, SLOT_HISTOGRAM, SLOT_MONEY, SLOT_REQUESTS, Segment, SlotRef,
)

import struct
from math import isfinite as _finite
from typing import NamedTuple

from headgate_engine.shared.exemplars import PREFIX, found_in
from headgate_engine.shared.money import slot_dollars

MAX_BOUNDS = BOUNDS_LIMIT
SECONDS = 1_000_000_000

cdef enum:
    # sizeof(HistogramSlot) + 8 * (2 * BOUNDS_LIMIT + 1), two counts of RequestSeries, and exponential buckets
    ROOM = 568 + 8 * NATIVE_BUCKETS
    # Bytes and streams.
    REQUEST_COUNTS = 16

# Prometheus names the number of buckets per power of two by its logarithm, and a bucket by the power of 2 ** (1 / 8) at
# its upper end (https://prometheus.io/docs/specs/native_histograms/).
NATIVE_SCHEMA = 3
# Seconds up to which a duration counts as zero, just under a microsecond. One token is the smallest of tokens.
NATIVE_ZERO = 2.0 ** -20
cdef int FIRST_OF_SECONDS = -20 * EIGHTHS + 1
cdef int FIRST_OF_UNITS = 0
# Upper ends of the buckets of a power of two, as the mantissas of frexp(): 2 ** (n / 8 - 1).
cdef double[EIGHTHS] MANTISSAS = [2.0 ** (n / 8.0 - 1.0) for n in range(EIGHTHS)]


cdef int native_bucket(int64_t value, int64_t scale) noexcept nogil:
    cdef int exponent, at
    cdef double part
    if value <= 0:
        return 0
    part = frexp(<double>value / <double>scale, &exponent)
    at = 0
    while at < EIGHTHS and part > MANTISSAS[at]:
        at += 1
    at += (exponent - 1) * EIGHTHS - (FIRST_OF_UNITS if scale == 1 else FIRST_OF_SECONDS) + 1
    return min(max(at, 0), NATIVE_BUCKETS - 1)

# The family of RequestSeries in the segment, and the metric families that a snapshot makes of it.
REQUESTS = b"gw_requests"
REQUEST_FAMILIES = ("gw_requests_total", "gw_response_bytes_total", "gw_request_duration_seconds")


cdef tuple _checked(bounds, int64_t scale):
    found = tuple(float(bound) for bound in bounds)
    if not 0 < len(found) <= MAX_BOUNDS or list(found) != sorted(set(found)):
        raise ValueError("a histogram has 1 to 32 rising bounds")
    if scale < 1:
        raise ValueError("a scale is a positive number")
    if not all(_finite(bound) and 0 <= bound * scale < INT64_MAX for bound in found):
        raise ValueError("bounds lie between 0 and 2^63 / scale")
    return found


cdef class BucketBounds:
    pass


# (bounds, scale) -> BucketBounds. The metric families have only a few.
cdef dict KNOWN = {}
cdef int MAX_KNOWN = 64


cdef BucketBounds _limits(tuple bounds, int64_t scale):
    cdef BucketBounds limits = <BucketBounds>KNOWN.get((bounds, scale))
    cdef Py_ssize_t i
    if limits is None:
        limits = BucketBounds()
        for i in range(len(bounds)):
            # Observations are integers, so `observation <= bound` is the same for the bound rounded down.
            limits.values[i] = <int64_t>floor(<double>bounds[i] * <double>scale + 1e-6)
        if len(KNOWN) >= MAX_KNOWN:
            KNOWN.clear()
        KNOWN[bounds, scale] = limits
    return limits


# The slot of an object that has none in a segment (made with __new__ alone); its values are never read.
cdef HistogramSlot nowhere
cdef int64_t[2] nowhere_counts
cdef BucketBounds NO_LIMITS = BucketBounds()
nowhere.scale = 1


cdef class Histogram:
    def __cinit__(self):
        self.slot = &nowhere
        self.counts = nowhere_counts
        self.limits = NO_LIMITS

    def __init__(self, Segment segment not None, bytes key not None, bounds, int64_t scale=SECONDS):
        self._open(segment, key, SLOT_HISTOGRAM, _checked(bounds, scale), scale)

    cdef int _open(self, Segment segment, bytes key, int kind, tuple bounds, int64_t scale) except -1:
        cdef char[ROOM] room
        cdef Py_ssize_t size = _empty(room, bounds, scale) + (REQUEST_COUNTS if kind == SLOT_REQUESTS else 0)
        cdef Py_ssize_t whole = size + (NATIVE_BUCKETS * sizeof(int64_t) if segment.header.native else 0)
        cdef SlotRef held = segment.series(key, kind, whole, <const char*>room)
        cdef HistogramSlot* slot = <HistogramSlot*>held.memory
        cdef double* values = <double*>(held.memory + sizeof(HistogramSlot))
        cdef int n = <int>len(bounds)
        cdef int i
        if slot.n_bounds != n or slot.scale != scale or any([values[i] != bounds[i] for i in range(n)]):
            raise ValueError("the histogram exists with other bounds")
        self.limits = _limits(bounds, scale)
        self.n_bounds = n
        self.counts = <int64_t*>(values + n)
        self.native = <int64_t*>(held.memory + size) if whole > size else NULL
        self.slot = slot
        self.held = held
        return 0

    cdef int exemplify(self, int64_t value, const char* trace_id, const char* span_id) except -1:
        if self.exemplars is None:
            if self.held is None:
                return 0
            self.exemplars = exemplars_of(self.held.segment, self.held, self.n_bounds + 1)
        self.exemplars.keep(self.bucket_of(value), value, trace_id, span_id)
        return 0

    def observe(self, double value):
        """Count a value in units of the bounds, rounded to 1/scale; a negative one counts as 0.

        Raises ValueError if it is not finite.
        """
        cdef double scaled = value * <double>self.slot.scale
        if not isfinite(scaled) or scaled >= 9.2e18:
            raise ValueError("observation out of range")
        self.observe_scaled(<int64_t>floor(scaled + 0.5) if scaled > 0 else 0)

    @property
    def count(self):
        cdef int i
        cdef int64_t total = 0
        for i in range(self.n_bounds + 1):
            total += HG_GET(&self.counts[i])
        return total

    @property
    def sum(self):
        high = HG_GET_UNSIGNED(&self.slot.total_high)
        return ((high << 64) + HG_GET_UNSIGNED(&self.slot.total)) / self.slot.scale


cdef class RequestSeries(Histogram):
    def __init__(self, Segment segment not None, str labels not None, bounds):
        """The requests of one label combination. labels: rendered. bounds: in seconds, as for Histogram."""
        self._open(segment, b"%s\0%s" % (REQUESTS, labels.encode("utf-8", "replace")), SLOT_REQUESTS,
                   _checked(bounds, SECONDS), SECONDS)

    def add(self, int64_t duration_ns, int64_t response_bytes, *, bint stream=False):
        """Count a request. duration_ns: ns. response_bytes: bytes of its response. stream: it lasts as long as its client
        wants, and has no duration."""
        if stream:
            self.count_stream(response_bytes)
        else:
            self.count(duration_ns, response_bytes)


cdef Py_ssize_t _empty(char* room, tuple bounds, int64_t scale) except -1:
    """Write an empty slot with its bounds and return its size. Other processes see it only when it is complete."""
    cdef HistogramSlot* slot = <HistogramSlot*>room
    cdef double* values = <double*>(room + sizeof(HistogramSlot))
    cdef int i
    memset(room, 0, ROOM)
    slot.n_bounds = len(bounds)
    slot.scale = scale
    for i in range(<int>slot.n_bounds):
        values[i] = bounds[i]
    return sizeof(HistogramSlot) + 8 * (2 * slot.n_bounds + 1)


class NativeBuckets(NamedTuple):
    """Exponential buckets. zero_threshold: up to which value observations are in zero_count. counts: by the number of
    the bucket, which reaches up to 2 ** (number / 8) in units of the bounds; without empty ones, in rising order.
    """

    zero_threshold: float
    zero_count: int
    counts: dict


class HistogramValue(NamedTuple):
    """bounds without +Inf; counts per bucket (not cumulative), one more than bounds; sum in units of the bounds.

    native: None in a segment without native histograms. exemplars: by the number of their bucket, {} without any.
    """

    bounds: tuple
    counts: tuple
    sum: float
    native: object = None
    exemplars: dict = {}        # noqa: RUF012  nothing changes it


class Sample(NamedTuple):
    """One series. kind: counter, gauge or histogram. value: a number, HistogramValue, or Decimal for money."""

    family: str
    labels: str
    kind: str
    value: object


def snapshot(Segment segment not None):
    """Return every counter, gauge and histogram of the segment, sorted by family and labels."""
    found = []
    entries = segment.entries(series_only=True)
    exemplars = {key[len(PREFIX):]: value for key, kind, value in entries if kind == SLOT_EXEMPLARS}
    for key, kind, value in entries:
        family, _separator, rest = key.partition(b"\0")
        labels = rest.decode("utf-8", "replace")
        if kind == SLOT_REQUESTS:
            found.extend(_requests(labels, value, exemplars.get(key)))
        elif kind == SLOT_HISTOGRAM:
            found.append(Sample(family.decode(), labels, "histogram", _value(value, 0, exemplars.get(key))))
        elif kind == SLOT_MONEY:
            found.append(Sample(family.decode(), labels, "counter", slot_dollars(value)))
        elif kind != SLOT_EXEMPLARS:
            found.append(Sample(family.decode(), labels, "counter" if kind == SLOT_COUNTER else "gauge",
                                struct.unpack("=q", value)[0]))
    found.sort(key=lambda sample: (sample.family, sample.labels))
    return found


def _requests(labels, bytes raw, exemplars):
    """Return the samples of a RequestSeries."""
    duration = _value(raw, REQUEST_COUNTS, exemplars)
    sent, streams = struct.unpack_from("=qq", raw, _counted(raw))
    values = (sum(duration.counts) + streams, sent, duration)
    for family, kind, value in zip(REQUEST_FAMILIES, ("counter", "counter", "histogram"), values):
        yield Sample(family, labels, kind, value)


cdef Py_ssize_t _counted(bytes raw) except -1:
    """Return the length of a slot up to its last count."""
    return 32 + 8 * (2 * struct.unpack_from("=q", raw)[0] + 1)


def _value(bytes raw, Py_ssize_t more, exemplars):
    """Return the value of a slot. more: bytes between the counts and the exponential buckets. exemplars: their slot, None
    without one."""
    n, scale, low, high = struct.unpack_from("=qqQQ", raw)
    bounds = struct.unpack_from(f"={n}d", raw, 32)
    counts = struct.unpack_from(f"={n + 1}q", raw, 32 + 8 * n)
    native = _native(raw, _counted(raw) + more, scale) if len(raw) > _counted(raw) + more else None
    marked = {} if exemplars is None else found_in(exemplars, scale)
    return HistogramValue(bounds, counts, ((high << 64) + low) / scale, native, marked)


def _native(bytes raw, Py_ssize_t start, scale):
    zeros, *counts = struct.unpack_from(f"={NATIVE_BUCKETS}q", raw, start)
    first = FIRST_OF_UNITS if scale == 1 else FIRST_OF_SECONDS
    return NativeBuckets(NATIVE_ZERO, zeros, {first + at: count for at, count in enumerate(counts) if count})
