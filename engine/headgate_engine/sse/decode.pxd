# Server-sent events (WHATWG HTML section 9.2), incremental: bytes may be cut anywhere.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef class SseDecoder:
    cdef ByteBuffer kept           # the line that is not complete yet
    cdef ByteBuffer data           # data of the event being read
    cdef readonly Py_ssize_t max_event
    cdef Py_ssize_t event_size
    cdef bytes event, last_id
    cdef bint id_seen, has_data, started, after_cr
    cdef object retry
    cdef list ready
    cdef int feed(self, const char* p, Py_ssize_t n) except -1
    cdef int _line(self, const char* p, Py_ssize_t n) except -1
    cdef int _dispatch(self) except -1
