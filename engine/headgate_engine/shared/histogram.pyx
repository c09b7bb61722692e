"""Histograms in shared memory, and the snapshot that the metrics page renders."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from headgate_engine.shared.counters cimport HG_ADD, HG_GET
from headgate_engine.shared.segment cimport SLOT_HISTOGRAM, Segment

import struct
from typing import NamedTuple

MAX_BOUNDS = 32
SECONDS = 1_000_000_000


cdef class Histogram:
    def __init__(self, Segment segment, bytes key, bounds, int64_t scale=SECONDS):
        cdef int i
        cdef double* shared_bounds
        bounds = tuple(bounds)
        if not 0 < len(bounds) <= MAX_BOUNDS or list(bounds) != sorted(set(bounds)):
            raise ValueError("a histogram has 1 to 32 rising bounds")
        self.n_bounds = len(bounds)
        self.segment = segment
        self.slot = <HistogramSlot*>segment.slot(
            key, SLOT_HISTOGRAM, sizeof(HistogramSlot) + 8 * (2 * self.n_bounds + 1))
        shared_bounds = <double*>(<char*>self.slot + sizeof(HistogramSlot))
        self.counts = <int64_t*>(shared_bounds + self.n_bounds)
        for i in range(self.n_bounds):
            shared_bounds[i] = bounds[i]
            self.limits[i] = <int64_t>(bounds[i] * scale)
        self.slot.scale = scale
        self.slot.n_bounds = self.n_bounds

    def observe(self, double value):
        """Counts an observation in units of the bounds."""
        self.observe_scaled(<int64_t>(value * self.slot.scale))

    @property
    def count(self):
        cdef int i
        cdef int64_t total = 0
        for i in range(self.n_bounds + 1):
            total += HG_GET(&self.counts[i])
        return total

    @property
    def sum(self):
        return HG_GET(&self.slot.total) / <double>self.slot.scale


class HistogramValue(NamedTuple):
    """bounds without +Inf; counts per bucket (not cumulative), one more than bounds; sum in units of the bounds."""

    bounds: tuple
    counts: tuple
    sum: float


class Sample(NamedTuple):
    """One series. kind: counter, gauge or histogram; value: int or HistogramValue."""

    family: str
    labels: str
    kind: str
    value: object


def snapshot(Segment segment):
    """Every counter, gauge and histogram of the segment, sorted by family and labels."""
    found = []
    for key, kind, value in segment.entries():
        family, separator, labels = key.partition(b"\0")
        if kind == 1 or kind == 2:
            found.append(Sample(family.decode(), labels.decode("utf-8", "replace"),
                                "counter" if kind == 1 else "gauge", struct.unpack("=q", value)[0]))
        elif kind == 3:
            found.append(Sample(family.decode(), labels.decode("utf-8", "replace"), "histogram", _value(value)))
    found.sort(key=lambda sample: (sample.family, sample.labels))
    return found


def _value(bytes raw):
    n, scale, total = struct.unpack_from("=qqq", raw)
    bounds = struct.unpack_from(f"={n}d", raw, 24)
    counts = struct.unpack_from(f"={n + 1}q", raw, 24 + 8 * n)
    return HistogramValue(bounds, counts, total / scale)
