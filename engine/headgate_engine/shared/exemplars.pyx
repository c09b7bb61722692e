"""Exemplars of histograms in shared memory; see exemplars.pxd."""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from headgate_engine.clock cimport wall_ns
from headgate_engine.shared.segment cimport SLOT_EXEMPLARS, Segment, SlotRef

import struct
from typing import NamedTuple

# How the key of a slot begins; the key of the histogram follows.
PREFIX = b"exemplars of "
# Most histograms of a process that have exemplars: 2 MB with 18 bounds.
MAX_HISTOGRAMS = 1024
cdef int _most = MAX_HISTOGRAMS
cdef int _made = 0


class FoundExemplar(NamedTuple):
    """One observation. trace_id, span_id: hexadecimal digits. value: in units of the bounds. time_s: since 1970."""

    trace_id: str
    span_id: str
    value: float
    time_s: float


cdef uint64_t checked(const char* p) noexcept nogil:
    """A number that tells one content of the first 64 bytes from others; never 0."""
    cdef uint64_t word
    cdef uint64_t found = 14695981039346656037U
    cdef int i
    for i in range(8):
        memcpy(&word, p + 8 * i, 8)
        found = (found ^ word) * <uint64_t>0xFF51AFD7ED558CCD
        found ^= found >> 32
    return found | 1


cdef Exemplars exemplars_of(Segment segment, SlotRef of, int count):
    global _made
    cdef Exemplars made = Exemplars.__new__(Exemplars)
    made.count = count
    if of.other or of.number == 0 or _made >= _most:
        return made                       # series that share their values have none
    made.held = segment.spare_series(PREFIX + segment.key_of(of), SLOT_EXEMPLARS, count * sizeof(Exemplar))
    if made.held is not None:
        made.cells = <Exemplar*>made.held.memory
        _made += 1
    return made


cdef class Exemplars:
    def __dealloc__(self):
        global _made
        if self.cells != NULL:
            _made -= 1

    cdef void keep(self, int bucket, int64_t value, const char* trace_id, const char* span_id) noexcept:
        cdef Exemplar one
        if self.cells == NULL or not 0 <= bucket < self.count:
            return
        memcpy(one.trace_id, trace_id, EXEMPLAR_TRACE)
        memcpy(one.span_id, span_id, EXEMPLAR_SPAN)
        one.value, one.time_ns = value, wall_ns()
        one.check = checked(<const char*>&one)
        memcpy(&self.cells[bucket], &one, sizeof(Exemplar))


def found_in(bytes raw not None, int64_t scale):
    """Return the exemplars in a copy of a slot (Segment.entries()), by the number of their bucket."""
    cdef const char* p = raw
    found = {}
    for bucket in range(len(raw) // sizeof(Exemplar)):
        at = bucket * sizeof(Exemplar)
        trace_id, span_id, value, time_ns, check = struct.unpack_from("=32s16sqqQ", raw, at)
        if check and check == checked(p + <Py_ssize_t>at):
            found[bucket] = FoundExemplar(trace_id.decode("ascii", "replace"), span_id.decode("ascii", "replace"), value / scale,
                                          time_ns / 1e9)
    return found
