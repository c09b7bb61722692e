# What plain MCP calls of one backend go by.

from headgate_engine.link.client cimport HttpClient
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.mcp.meter cimport McpTargetMeter
from headgate_engine.mcp.sessions cimport SessionTable

from libc.stdint cimport int64_t

cdef class DirectTarget:
    cdef HttpClient client
    cdef bytes path
    cdef tuple steps                 # Step of its policies; none of them suspends
    cdef McpTargetMeter meter        # None: nobody counts
    cdef int64_t timeout_ns          # until the head of an answer, or the whole of one that is no stream; 0: none
    # Counts the response to a call that began at `started_ns`.
    cdef int count_call(self, str method, int64_t started_ns, bytes answer) except -1
    # Counts that there is none. What the server has ended in order, not `broken`, is an error of one that runs.
    cdef int count_unanswered(self, int64_t started_ns, str reason, bint broken) except -1

cdef class CallSettings:
    # What the calls of one backend have in common.
    cdef HandlerBackend handler      # takes over
    cdef object service              # headgate.backend.mcp.direct_service.DirectService
    cdef SessionTable sessions
    cdef object count                # of the telemetry
    cdef list fields                 # of answers without a session id; None: the service makes all
    cdef bint federated              # one of several targets is asked: see DirectCall
    cdef int64_t patience_ns         # after so long the client gets a comment, which Python sees to; 0: never
