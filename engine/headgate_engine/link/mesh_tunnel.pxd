# A tunnel through a workload of a mesh (HBONE): CONNECT over HTTP/2 on a stream that a pool hands out, and once that is open a
# transport of asyncio for what goes through it. The other half is link/stream_transport.
#
# What comes waits for the next turn of the loop: the connection reads it in the worker's scratch memory, which the protocol in the
# tunnel reads into itself. At most MOST_WAITING bytes do, and one read more; the rest stays in the windows of the stream.

from headgate_engine.link.contract cimport ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool

cdef class MeshTunnel(ResponseSink):
    cdef Pool pool
    cdef bytes authority
    cdef object waiter               # future of opened(); None: nobody waits
    cdef ClientStream stream         # None: there is none yet, it is over, or this side has closed
    cdef int attempts
    cdef bint asked                  # the pool looks for a connection
    cdef readonly bint open
    cdef object protocol
    cdef bint buffered               # it is a BufferedProtocol
    cdef list waiting                # [bytes] that the protocol has not got yet
    cdef Py_ssize_t waiting_size
    cdef bint paused                 # the protocol takes nothing now
    cdef bint ended, ended_told      # the workload has ended its half; the protocol knows
    cdef bint output_ended           # this side has
    cdef bint closing                # nothing more is handed on
    cdef object lost_for             # OSError that ended it; None
    cdef bint scheduled
    cdef object linger               # timer of a tunnel that this side has closed

    cdef int start(self, bint fresh) except -1
    cdef int later(self) except -1
    cdef int fail(self, object error) except -1
    cdef int hand_on(self, bytes data) except -1
    cdef int let_go(self) except -1
