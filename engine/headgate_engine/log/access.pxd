# Access-log lines, text and JSON, written directly into a buffer.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.fields cimport LogFields
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint64_t

# The text before the value of a field.
cdef struct Key:
    const char* text
    Py_ssize_t length

cdef class AccessLogFormat:
    cdef readonly bint as_json
    cdef readonly tuple remove
    cdef uint64_t kept           # bit per entry of FIELDS; of the line that is being written
    cdef uint64_t usual          # of lines without fields named by flatten()
    cdef const Key* keys         # of FIELDS, in this format
    cdef LogFields fields        # None: no expressions
    cdef set removed             # removed keys that are not in FIELDS
    cdef int64_t second          # the time of which the text is in `stamp`
    cdef bytes stamp
    # Appends the line of one finished request. wall_ns: CLOCK_REALTIME. After an exception nothing is appended.
    cdef int write_line(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns) except -1
    cdef list _placed(self, list fields, dict named)
    cdef dict _named(self, RequestContext ctx)
    cdef int _open_json(self, ByteBuffer out, int64_t wall_ns, dict named) except -1
    cdef int _write(self, ByteBuffer out, RequestContext ctx, int64_t wall_ns, list extras, dict named) except -1
    cdef int _place(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1
    cdef int _target(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _request(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _llm(self, ByteBuffer out, RequestContext ctx, list extras) except -1
    cdef int _outcome(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _extras(self, ByteBuffer out, list extras, int before) except -1
    cdef int _extra(self, ByteBuffer out, str key, value) except -1
    cdef int _time(self, ByteBuffer out, int64_t wall_ns) except -1
    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1
    # As _text(), for a value that needs no escapes, nor quotes in the text format.
    cdef int _plain(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1
    cdef int _str(self, ByteBuffer out, int field, str value) except -1
    cdef int _pair(self, ByteBuffer out, int field, str first, str second) except -1
    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1
