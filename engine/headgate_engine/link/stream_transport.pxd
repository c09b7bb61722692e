# What is in a tunnel on a stream of HTTP/2, as a transport of asyncio: the protocols of a port (link/proxy_header, link/handshake,
# link/downstream, link/tcp_server) use it as they use that of a socket.
#
# What comes waits for the next turn of the loop: the connection reads it in the worker's scratch memory, which these protocols
# read into themselves. At most MOST_WAITING bytes do, and one read more; the rest stays in the windows of the stream.

from headgate_engine.link.contract cimport RequestSink
from headgate_engine.link.http2_stream cimport Http2ServerStream
from headgate_engine.link.worker cimport Worker

cdef class StreamTransport(RequestSink):
    cdef Worker worker
    cdef Http2ServerStream stream    # None: it is over, or this side has closed
    cdef object outer                # the transport of the connection, which knows the addresses
    cdef object protocol
    cdef list waiting                # [bytes] that the protocol has not got yet
    cdef Py_ssize_t waiting_size
    cdef bint paused                 # the protocol takes nothing now
    cdef bint ended, ended_told      # the client has ended its half; the protocol knows
    cdef bint closing                # nothing more is handed on
    cdef bint scheduled

    cdef int later(self) except -1
    cdef int hand_on(self, bytes data) except -1

cdef StreamTransport new_stream_transport(Worker worker, object outer, Http2ServerStream stream)
