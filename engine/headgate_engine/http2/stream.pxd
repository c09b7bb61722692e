# One stream of a connection: its states, windows and what waits in both directions.

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

cdef class SessionStream:
    cdef readonly uint32_t number
    cdef int state                   # states.StreamState
    cdef int incoming                # states.MessageState of what comes
    cdef object owner                # who uses it; None: nobody (any more)
    # -- sending -----------------------------------------------------------------------------------------------------
    cdef int64_t send_window         # below 0 after the peer has made its windows smaller
    cdef ByteBuffer pending          # DATA that waits; None: none does
    cdef Py_ssize_t pending_at       # how much of it has left
    cdef bint ending                 # the end follows `pending`, with `trailers` if there are any
    cdef MessageHead trailers
    cdef SessionStream next_ready      # in the line of those that may send
    cdef bint in_line
    cdef Py_ssize_t quota            # bytes that it may send in its turn; what a turn leaves is kept, up to one turn's
    # -- receiving ---------------------------------------------------------------------------------------------------
    cdef int64_t window              # what the peer may still send
    cdef int64_t target              # what it may at most
    cdef int64_t body_left           # of content-length; -1: unknown
    cdef bint bodiless               # the response has none, whatever content-length says (HEAD)
    cdef bint paused                 # its reader takes nothing now
    cdef ByteBuffer held             # what has come meanwhile; None: nothing
    cdef bint held_end
    cdef MessageHead held_trailers
    # -- time, ns of the monotonic clock -------------------------------------------------------------------------------
    cdef int64_t received_ns         # when something came
    cdef int64_t sent_ns             # when DATA left, or began to wait

    cdef inline Py_ssize_t waiting(self) noexcept:
        """Bytes of DATA that wait."""
        return 0 if self.pending is None else self.pending.length - self.pending_at

    cdef inline Py_ssize_t held_bytes(self) noexcept:
        return 0 if self.held is None else self.held.length

cdef SessionStream new_stream(uint32_t number)
