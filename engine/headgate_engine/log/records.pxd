# Records of finished requests on their way to the request log's database: formatted here, gathered by the supervisor.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.log.access cimport AccessLogFormat
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class RecordFormat:
    cdef readonly AccessLogFormat line      # what the record keeps as attributes; its filter says what is kept at all
    cdef readonly bint payload              # prompts and answers of models too
    # Appends the record of one finished request, or nothing when it is not wanted; now_ns: CLOCK_REALTIME.
    cdef int write(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1
    cdef int _head(self, ByteBuffer out, RequestContext ctx, int64_t now_ns) except -1

cdef class RecordSink:
    cdef readonly int fd                    # -1: nobody reads any more
    cdef readonly object loop
    cdef object dropped                     # shared.counters.Counter, None: not counted
    cdef ByteBuffer waiting
    cdef object handle                      # the flush that is due
    cdef int put(self, RequestContext ctx, RecordFormat form) except -1
    # Whether everything has gone.
    cdef bint send(self) except -1
