# Records of finished requests for the request log's database: formatted here, collected by the supervisor.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.access cimport AccessLogFormat
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class RecordFormat:
    cdef readonly AccessLogFormat line      # formats the attributes; its filter selects the requests
    cdef readonly bint payload              # include prompts and answers of models
    # Appends the record of one finished request, or nothing if the filter excludes it. now_ns: CLOCK_REALTIME.
    cdef int write(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1
    cdef int _head(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1

cdef class RecordSink:
    cdef readonly int fd                    # -1: closed
    cdef readonly object loop
    cdef object dropped                     # shared.counters.Counter, None: not counted
    cdef ByteBuffer waiting
    cdef object handle                      # timer of the next flush
    cdef int put(self, RequestContext ctx, RecordFormat form) except -1
    # Returns whether all waiting records are written.
    cdef bint send(self) except -1
