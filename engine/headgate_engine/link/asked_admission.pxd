# A connection that carries HTTP and waits for a service to say whether it may (frontendPolicies.networkExtAuthz). What its
# client sends meanwhile stays in the socket, but for the first read.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.downstream cimport DownstreamConnection
from headgate_engine.link.takeover cimport Takeover
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class AskedAdmission(Takeover):
    cdef DownstreamConnection connection    # None: it is over
    cdef RequestContext ctx
    cdef ByteBuffer early
    cdef bint client_ended
    cdef object task

    cdef int go_on(self) except -1
    cdef int refuse(self, str detail) except -1
    cdef int let_go(self) except -1
