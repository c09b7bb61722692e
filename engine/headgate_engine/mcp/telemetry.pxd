# What one MCP request tells: log fields, the series it counts in, and `mcp.*` of expressions.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport Message

cdef class RequestTelemetry:
    cdef readonly str method, kind, server, name, session_id
    cdef readonly bint failed
    cdef readonly Message message
    cdef readonly bytes answer           # the response, once there is one
    cdef object call
    cdef RequestContext context          # of the call; None: nobody logs it
    cdef object count                    # None once it was called
    cdef list logged                     # fields that are told once
    cdef int _log(self, str key, value) except -1
    cdef int _log_once(self, str key, str value) except -1
    cdef int _record(self, str target, str name, str kind) except -1

cdef class ExpressionView:
    cdef RequestTelemetry telemetry
