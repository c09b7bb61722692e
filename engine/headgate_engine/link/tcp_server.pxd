# A client's connection whose bytes go to a backend as they come (TCP listeners, TLS passed on or ended). Each side's end is
# passed on, each side's slowness stops the other, and a side that breaks off has the other one reset.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.contract cimport ResponseSink
from headgate_engine.link.endpoints cimport EndpointState
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.tcp_upstream cimport BurstWire, TcpUpstreamStream
from headgate_engine.log.meter cimport BindMeter
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef enum:
    # Endpoints of a backend that are tried for one connection.
    MOST_TRIES = 3

cdef class TcpConnection(ClientFace):
    cdef str asked                   # the name in the handshake that is passed on; None: there is none
    cdef RequestContext ctx          # for its log line; None: the connection is over
    cdef BindMeter meter             # counts its bytes; None: nothing is counted
    cdef TcpCall call                # None: no backend is chosen yet
    cdef ByteBuffer early            # what came before there was a backend; None: nothing
    cdef object asking               # the task that asks whether it may connect; None: nobody is asked
    cdef bint client_ended, upstream_ended
    cdef bint lost

    cdef int read(self, Py_ssize_t n) except -1
    cdef int begin(self) except -1
    # Chooses a backend. Its endpoint `avoid` has just failed.
    cdef int choose(self) except -1
    cdef int connect(self, EndpointState avoid) except -1
    cdef int wanted_port(self) except -1
    cdef int connected(self, TcpUpstreamStream stream) except -1
    cdef int connect_failed(self, EndpointState endpoint, int failure, str detail) except -1
    cdef int to_client(self, const char* p, Py_ssize_t n) except -1
    cdef int to_upstream(self, const char* p, Py_ssize_t n) except -1
    cdef int backend_ended(self) except -1
    cdef int backend_failed(self, str detail) except -1
    # Both sides have sent all: what is queued leaves.
    cdef int complete(self) except -1
    # Ends both sides, and what reached them is cut short. `reason`: as in metrics of requests.
    cdef int break_off(self, str detail, str reason) except -1
    # Writes the line of the log and lets go of the backend.
    cdef int settle(self, str detail, str reason, bint clean) except -1

cdef class TcpWire(BurstWire):
    pass

cdef class TcpCall(ResponseSink):
    # The connection to the backend, from the choice of an endpoint on.
    cdef TcpConnection connection    # None: it is over
    cdef TcpUpstreamStream stream    # None: not connected yet, or over
    cdef Pool pool
    cdef EndpointState endpoint      # None: the backend has one place only
    cdef bint connecting
    cdef int64_t started_ns
    cdef int end(self, bint clean) except -1
