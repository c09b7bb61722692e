# Access-log lines, text and JSON, written directly into a buffer.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.request_fields cimport RequestFields
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

# The level of a line follows the status: from 500, from 400 (or none: the client left), others.
cdef enum LineLevel:
    LINE_INFO = 0
    LINE_WARN = 1
    LINE_ERROR = 2

# The text before the value of a field.
cdef struct Key:
    const char* text
    Py_ssize_t length

cdef class AccessLogFormat(RequestFields):
    cdef readonly bint as_json
    cdef const Key* keys         # of FIELDS, in this format
    cdef int64_t second          # the time of which the text is in `stamp`
    cdef bytes stamp
    # Appends the line of one finished request. wall_ns: CLOCK_REALTIME. After an exception nothing is appended.
    cdef int write_line(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns) except -1
    cdef int _open_json(self, ByteBuffer out, bytes level, int64_t wall_ns, dict named) except -1
    cdef int _write(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns, dict named) except -1
    cdef int _time(self, ByteBuffer out, int64_t wall_ns) except -1
    cdef int _fraction(self, ByteBuffer out, int thousandths) except -1

cdef int level_of(RequestContext ctx) noexcept
