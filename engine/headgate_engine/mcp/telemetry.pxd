# What one MCP request tells: log fields, the series it counts in, and `mcp.*` of expressions.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport RpcMessage
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.segment cimport Segment

cdef class RequestCounts:
    # `gw_mcp_requests_total` of one backend in one worker.
    cdef readonly Segment segment
    cdef frozenset methods               # known ones; others are counted as one
    cdef dict counters                   # by method, kind, target, name and place
    cdef dict names                      # (target, name) with a label value of their own
    cdef int add(self, call, RequestTelemetry telemetry) except -1
    cdef str _name_of(self, RequestTelemetry telemetry)

cdef class RequestTelemetry:
    cdef readonly str method, kind, server, name, session_id
    cdef readonly bint failed
    cdef readonly RpcMessage message
    cdef readonly bytes answer           # the response, once there is one
    cdef object call
    cdef RequestContext context          # of the call; None: nobody logs it
    cdef object count                    # None once it was called
    cdef list logged                     # fields that are told once
    cdef int _log(self, str key, value) except -1
    cdef int _log_once(self, str key, str value) except -1
    cdef int _begin(self, RequestContext context) except -1
    cdef int _record(self, str target, str name, str kind) except -1
    # Tells how it ended: `answer` is the response, `error` whether it may be one. Only the first time counts.
    cdef int end(self, int status, bytes answer, bint maybe_error) except -1

cdef class ExpressionView:
    cdef RequestTelemetry telemetry

# The same as the class makes of a call; for callers that have the call's context.
cdef RequestTelemetry new_telemetry(call, RequestContext context, RpcMessage message, str session_id, str server, count)
