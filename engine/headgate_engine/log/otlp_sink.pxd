# Spans and log records on their way to an exporter: encoded at the end of their request, taken in batches.

from headgate_engine.shared.counters cimport Counter
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class OtlpSink:
    cdef ByteBuffer waiting         # fields of the message that has them, one after the other
    cdef readonly Py_ssize_t count  # of what is in `waiting`
    cdef object ready               # collections.deque of (bytes, count): batches that nobody has taken yet
    cdef Counter dropped            # None: not counted
    cdef public object wake         # wake(full): something waits, or a whole batch does; None: nobody listens
    # Whether there is room; what finds none is counted as dropped, `n` of it.
    cdef bint admits(self, Py_ssize_t n) noexcept
    # `n` more are in `waiting`.
    cdef int added(self, Py_ssize_t n) except -1
