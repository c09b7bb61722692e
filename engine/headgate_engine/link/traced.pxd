# Tells a recorder what happens to a request that somebody watches (/debug/trace). The request takes the same way as every other;
# nobody watches most of them, and those pay for none of this.
#
# A recorder is a Python object (headgate.trace.recorder). Its methods never raise.

from headgate_engine.link.backend cimport RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.observer cimport RequestObserver
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
    cdef TraceObserver observer

cdef class TracedUpstream(ClientStream):
    cdef ClientStream inner
    cdef BodyCopy sent

cdef class TraceObserver(RequestObserver):
    cdef object trace
    cdef BodyCopy sent, received, raw      # to the backend, to the client, from a backend whose answer is rewritten
    cdef bint calling                      # backendCallStart was told, its result not yet
    cdef bint responded                    # the backend gave a response
    cdef int64_t step_started
    cdef object step                       # that waits
    cdef str phase                         # of the steps that run
    cdef object media_type                 # of the backend's response, before a tap changes it
    cdef int _step_ends(self, int verdict, object reply) except -1
    cdef int _run(self, RoutedRequest request, tuple steps) except -1

# Who watches this request, by the wish of `worker.watchers`; None for most of them.
cdef RequestObserver observer_of(RoutedRequest request)
