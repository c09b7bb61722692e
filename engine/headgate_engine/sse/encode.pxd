# Encoding of server-sent events.

from libc.stdint cimport int64_t

from headgate_engine.wire.buffer cimport ByteBuffer

# Appends one event with its blank line. None leaves `event` or `event_id` out. Raises ValueError, and appends nothing,
# if one of them contains a line break or NUL.
cdef int append_event(ByteBuffer out, const char* data, Py_ssize_t n, bytes event, bytes event_id) except -1
# Appends the line that sets the reconnection time; it belongs to the event that follows. Raises ValueError below 0.
cdef int append_retry(ByteBuffer out, int64_t retry_ms) except -1
