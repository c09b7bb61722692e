"""Sums of money and exemplars, as requests write them."""

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from headgate_engine.shared.counters cimport HG_GET
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.money cimport Money

from headgate_engine.shared.money import dollars


def pay(Money money not None, int64_t picos):
    if picos < 0:
        raise ValueError("a sum never falls")
    money.pay(picos)


def paid(Money money not None):
    return dollars(int(HG_GET(&money.slot.micros)) * 1000000 + int(HG_GET(&money.slot.picos)))


def mark(Histogram histogram not None, double value, str trace_id not None, str span_id not None):
    cdef bytes trace = trace_id.encode("ascii"), span = span_id.encode("ascii")
    if len(trace) != 32 or len(span) != 16:
        raise ValueError("an id has 32 or 16 digits")
    if not isfinite(value):
        raise ValueError("no value")
    histogram.exemplify(<int64_t>(value * <double>histogram.slot.scale), trace, span)
