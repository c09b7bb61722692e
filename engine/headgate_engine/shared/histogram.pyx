"""Histograms in shared memory, and the snapshot that the metrics page renders."""

from libc.math cimport floor, isfinite
from libc.stdint cimport INT64_MAX, int64_t
from libc.string cimport memset

from headgate_engine.shared.counters cimport HG_GET, HG_GET_UNSIGNED
from headgate_engine.shared.segment cimport SLOT_COUNTER, SLOT_GAUGE, SLOT_HISTOGRAM, SLOT_MONEY, Segment

import struct
from math import isfinite as _finite
from typing import NamedTuple

from headgate_engine.shared.money import slot_dollars

MAX_BOUNDS = BOUNDS_LIMIT
SECONDS = 1_000_000_000

cdef enum:
    # sizeof(HistogramSlot) + 8 * (2 * BOUNDS_LIMIT + 1)
    ROOM = 552


cdef tuple _checked(bounds, int64_t scale):
    found = tuple(float(bound) for bound in bounds)
    if not 0 < len(found) <= MAX_BOUNDS or list(found) != sorted(set(found)):
        raise ValueError("a histogram has 1 to 32 rising bounds")
    if scale < 1:
        raise ValueError("a scale is a positive number")
    if not all(_finite(bound) and 0 <= bound * scale < INT64_MAX for bound in found):
        raise ValueError("bounds lie between 0 and 2^63 / scale")
    return found


cdef class Histogram:
    def __init__(self, Segment segment not None, bytes key not None, bounds, int64_t scale=SECONDS):
        cdef char room[ROOM]
        cdef Py_ssize_t size = 0
        cdef tuple found = _checked(bounds, scale)
        cdef void* first = self._first(found, scale, room, &size)
        self._bind(segment, <HistogramSlot*>segment.slot_from(key, SLOT_HISTOGRAM, size, first), found, scale)

    @staticmethod
    def overflow(Segment segment not None, bounds, int64_t scale=SECONDS):
        """The histogram of these bounds for everything that finds no room."""
        cdef char room[ROOM]
        cdef Py_ssize_t size = 0
        cdef Histogram histogram = Histogram.__new__(Histogram)
        cdef tuple found = _checked(bounds, scale)
        cdef void* first = histogram._first(found, scale, room, &size)
        labels = b'bounds="%s",scale="%d"' % (" ".join(f"{bound:g}" for bound in found).encode(), scale)
        histogram._bind(
            segment, <HistogramSlot*>segment.overflow(SLOT_HISTOGRAM, labels, size, first), found, scale)
        return histogram

    cdef void* _first(self, tuple bounds, int64_t scale, void* room, Py_ssize_t* size) except NULL:
        """An empty slot with its bounds: what other processes see from its first moment."""
        cdef HistogramSlot* slot = <HistogramSlot*>room
        cdef double* values = <double*>(<char*>room + sizeof(HistogramSlot))
        cdef int i
        memset(room, 0, ROOM)
        slot.n_bounds = len(bounds)
        slot.scale = scale
        for i in range(<int>slot.n_bounds):
            values[i] = bounds[i]
        size[0] = sizeof(HistogramSlot) + 8 * (2 * slot.n_bounds + 1)
        return room

    cdef int _bind(self, Segment segment, HistogramSlot* slot, tuple bounds, int64_t scale) except -1:
        cdef double* values = <double*>(<char*>slot + sizeof(HistogramSlot))
        cdef int i
        cdef int n = len(bounds)
        if slot.n_bounds != n or slot.scale != scale or any(values[i] != bounds[i] for i in range(n)):
            raise ValueError("the histogram exists with other bounds")
        for i in range(n):
            # `observation <= bound` for whole observations: the bound itself, rounded down.
            self.limits[i] = <int64_t>floor(<double>bounds[i] * <double>scale + 1e-6)
        self.n_bounds = n
        self.counts = <int64_t*>(values + n)
        self.slot = slot
        self.segment = segment
        return 0

    def observe(self, double value):
        """Counts an observation in units of the bounds."""
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


class HistogramValue(NamedTuple):
    """bounds without +Inf; counts per bucket (not cumulative), one more than bounds; sum in units of the bounds."""

    bounds: tuple
    counts: tuple
    sum: float


class Sample(NamedTuple):
    """One series. kind: counter, gauge or histogram; value: int, HistogramValue, or Decimal for money."""

    family: str
    labels: str
    kind: str
    value: object


def snapshot(Segment segment not None):
    """Every counter, gauge and histogram of the segment, sorted by family and labels."""
    found = []
    for key, kind, value in segment.entries():
        family, _separator, labels = key.partition(b"\0")
        if kind == SLOT_COUNTER or kind == SLOT_GAUGE:
            found.append(Sample(family.decode(), labels.decode("utf-8", "replace"),
                                "counter" if kind == SLOT_COUNTER else "gauge", struct.unpack("=q", value)[0]))
        elif kind == SLOT_MONEY:
            found.append(Sample(family.decode(), labels.decode("utf-8", "replace"), "counter", slot_dollars(value)))
        elif kind == SLOT_HISTOGRAM:
            found.append(Sample(family.decode(), labels.decode("utf-8", "replace"), "histogram", _value(value)))
    found.sort(key=lambda sample: (sample.family, sample.labels))
    return found


def _value(bytes raw):
    n, scale, low, high = struct.unpack_from("=qqQQ", raw)
    bounds = struct.unpack_from(f"={n}d", raw, 32)
    counts = struct.unpack_from(f"={n + 1}q", raw, 32 + 8 * n)
    return HistogramValue(bounds, counts, ((high << 64) + low) / scale)
