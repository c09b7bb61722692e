# Server-sent events, the writing side.

from libc.stdint cimport int64_t

from headgate_engine.wire.buffer cimport ByteBuffer

# One event with its blank line. ValueError, and nothing is written, when `event` or `event_id` cannot be one line;
# None leaves them out.
cdef int append_event(ByteBuffer out, const char* data, Py_ssize_t n, bytes event, bytes event_id) except -1
# The line that sets the reconnection time, for the event that follows. ValueError below 0.
cdef int append_retry(ByteBuffer out, int64_t retry_ms) except -1
