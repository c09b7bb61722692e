# A request that somebody watches (/debug/trace). It takes the same way as every other; each stage is told to a recorder.
# A request that nobody watches is a plain Exchange: it pays one look at `worker.watchers` and none of this.
#
# A recorder is a Python object (headgate.trace.recorder). Its methods never raise.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.forward cimport Exchange
from headgate_engine.plan.plans cimport BindPlan
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class BodyCopy:
    # The first `limit` bytes of a body.
    cdef ByteBuffer kept
    cdef Py_ssize_t limit
    cdef int64_t seen
    cdef int add(self, const char* p, Py_ssize_t n) except -1
    cdef bytes take(self)

cdef class TracedClient(ServerStream):
    cdef ServerStream inner
    cdef TracedExchange exchange

cdef class TracedUpstream(ClientStream):
    cdef ClientStream inner
    cdef TracedExchange exchange

cdef class TracedExchange(Exchange):
    cdef object trace
    cdef BodyCopy sent, received, raw      # to the backend, to the client, from a backend whose answer is rewritten
    cdef bint calling                      # backendCallStart was told, its result not yet
    cdef bint answered                     # the backend gave a response
    cdef int64_t step_started
    cdef object step                       # that waits
    cdef int _call_starts(self, str target) except -1
    cdef int _call_ends(self, object status, object error) except -1
    cdef int _step_ends(self, int verdict) except -1
    cdef int _answered_by_handler(self, int status) except -1

cdef Exchange watched(Exchange plain, BindPlan bind)
