# Access-log records for OTLP (opentelemetry.proto.logs.v1.LogRecord).

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.otlp_fields cimport OtlpFields
from headgate_engine.log.otlp_sink cimport OtlpSink

from libc.stdint cimport int64_t

cdef class OtlpLogPlan:
    cdef readonly OtlpFields fields
    cdef readonly OtlpSink sink
    # Adds the record of a finished request unless the filter keeps it out. wall_ns: CLOCK_REALTIME.
    cdef int put(self, RequestContext ctx, int64_t wall_ns) except -1
