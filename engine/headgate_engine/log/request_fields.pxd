# What is told of a finished request, in the order of keys.ORDER. Who writes it (log/access: lines, log/otlp_fields: attributes)
# says how a field looks.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.fields cimport LogFields
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint64_t

# Positions in keys.FIELDS.
cdef enum:
    F_REQUEST_ID = 0
    F_GATEWAY = 1
    F_LISTENER = 2
    F_ROUTE_RULE = 3
    F_ROUTE = 4
    F_ENDPOINT = 5
    F_SRC_ADDR = 6
    F_SRC_IDENTITY = 7
    F_BYTES_RECEIVED = 8
    F_BYTES_SENT = 9
    F_METHOD = 10
    F_HOST = 11
    F_PATH = 12
    F_VERSION = 13
    F_STATUS = 14
    F_USER_AGENT = 15
    F_TLS_SNI = 16
    F_TRACE_ID = 17
    F_SPAN_ID = 18
    F_PROTOCOL = 19
    F_OPERATION = 20
    F_PROVIDER = 21
    F_MODEL = 22
    F_INPUT_TOKENS = 23
    F_CACHED_TOKENS = 24
    F_OUTPUT_TOKENS = 25
    F_REASONING_TOKENS = 26
    F_RETRY = 27
    F_ERROR = 28
    F_REASON = 29
    F_UPSTREAM = 30
    F_DURATION = 31
    FIELD_COUNT = 32

cdef class RequestFields:
    cdef readonly tuple remove
    cdef uint64_t kept           # bit per entry of FIELDS; of the request that is being written
    cdef uint64_t usual          # of requests without fields named by flatten()
    cdef LogFields fields        # None: no expressions
    cdef set removed             # removed keys that are not in FIELDS
    # Whether the filter lets the request through.
    cdef bint wants(self, RequestContext ctx) except -1
    # Appends the fields; named: what _named() has found. Who calls both sets `kept` to `usual` behind them.
    cdef int write_fields(self, ByteBuffer out, RequestContext ctx, dict named) except -1
    cdef list _placed(self, list fields, dict named)
    cdef dict _named(self, RequestContext ctx)
    cdef int _place(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1
    cdef int _names(self, ByteBuffer out, ListenerPlan listener, RoutePlan route) except -1
    cdef int _target(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _request(self, ByteBuffer out, RequestContext ctx, list extras) except -1
    cdef int _llm(self, ByteBuffer out, RequestContext ctx, list extras) except -1
    cdef int _outcome(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _extras(self, ByteBuffer out, list extras, int before) except -1
    cdef int _str(self, ByteBuffer out, int field, str value) except -1
    cdef int _pair(self, ByteBuffer out, int field, str first, str second) except -1
    # -- what a form of lines does -----------------------------------------------------------------------------------------
    cdef int _extra(self, ByteBuffer out, str key, value) except -1
    cdef int _text(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1
    # As _text(), for a value that needs no escapes, nor quotes in the text format.
    cdef int _plain(self, ByteBuffer out, int field, const char* p, Py_ssize_t n) except -1
    cdef int _count(self, ByteBuffer out, int field, int64_t value) except -1
    # A length of time in ns.
    cdef int _span(self, ByteBuffer out, int field, int64_t ns) except -1

cdef Py_ssize_t without_port(const char* host, Py_ssize_t n) noexcept nogil
