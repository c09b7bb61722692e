# Server-sent events, the writing side.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef int append_event(ByteBuffer out, const char* data, Py_ssize_t n, bytes event, bytes event_id) except -1
