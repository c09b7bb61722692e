# Streams of generateContent for clients that did not ask for events: one JSON array, an entry for each event.

from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class ArrayTap(OuterTap):
    cdef SseDecoder events               # None: the answer is no stream, and goes on as it comes
    cdef ByteBuffer piece                # what the inner tap gave
    cdef bint opened, closed
    cdef int _through(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int _close(self, ByteBuffer out) except -1

# The tap around one whose answers are events.
cdef ArrayTap array_tap(ResponseTap inner)
