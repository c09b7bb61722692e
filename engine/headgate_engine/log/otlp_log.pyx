"""Access-log records for OTLP; see otlp_log.pxd. The body of a record is `request`, as the scope of a line is; its severity
follows the status as the level of a line does.
"""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID, TraceContext
from headgate_engine.log.access cimport level_of
from headgate_engine.log.otlp_fields cimport OtlpFields
from headgate_engine.log.otlp_sink cimport OtlpSink
from headgate_engine.log.protobuf cimport close_message, open_message, put_bytes, put_fixed32, put_fixed64, put_hex
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint64_t

cdef enum:
    # Tags of LogRecord, and of ScopeLogs.log_records.
    LOG_RECORDS = 0x12
    TIME = 0x09
    SEVERITY = 0x10
    SEVERITY_TEXT = 0x1A
    BODY = 0x2A
    FLAGS = 0x45
    TRACE = 0x4A
    SPAN = 0x52
    OBSERVED = 0x59

# Of log.access.LineLevel: SEVERITY_NUMBER_INFO, _WARN, _ERROR.
cdef char[3] SEVERITIES = [9, 13, 17]
cdef tuple LEVELS = (b"INFO", b"WARN", b"ERROR")
cdef bytes REQUEST_TEXT = b"\x0a\x07request"


cdef class OtlpLogPlan:
    def __init__(self, OtlpFields fields not None, OtlpSink sink not None):
        self.fields = fields
        self.sink = sink

    cdef int put(self, RequestContext ctx, int64_t wall_ns) except -1:
        cdef ByteBuffer out = self.sink.waiting
        cdef Py_ssize_t start = out.length
        cdef TraceContext trace = ctx.trace_context
        cdef int level = level_of(ctx)
        cdef bytes text = <bytes>LEVELS[level]
        cdef Py_ssize_t at
        if not self.fields.wants(ctx) or not self.sink.admits(1):
            return 0
        try:
            at = open_message(out, LOG_RECORDS)
            put_fixed64(out, TIME, <uint64_t>wall_ns)
            put_fixed64(out, OBSERVED, <uint64_t>wall_ns)
            out.append_byte(SEVERITY)
            out.append_byte(SEVERITIES[level])
            put_bytes(out, SEVERITY_TEXT, text, len(text))
            put_bytes(out, BODY, REQUEST_TEXT, len(REQUEST_TEXT))
            if trace is not None:
                put_hex(out, TRACE, trace.trace_id, TRACE_ID)
                put_hex(out, SPAN, trace.span_id, SPAN_ID)
                put_fixed32(out, FLAGS, 1 if trace.sampled else 0)
            self.fields.write_fields(out, ctx, self.fields._named(ctx))
            close_message(out, at)
        except BaseException:
            out.length = start
            raise
        finally:
            self.fields.kept = self.fields.usual
        return self.sink.added(1)

    # -- Python face ---------------------------------------------------------------------------------------------------
    def add(self, RequestContext ctx not None, int64_t wall_ns):
        self.put(ctx, wall_ns)
