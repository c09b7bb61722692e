# One direction of a request that passes through a processor (link/processed).

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum LaneMode:
    LANE_PASSES = 0       # the body goes on as it comes
    LANE_HOLDS = 1        # it waits, and its source is paused
    LANE_GATHERS = 2      # it is collected, up to a limit
    LANE_FEEDS = 3        # the processor gets it as it comes
    LANE_DROPS = 4        # nobody wants it

cdef class Lane:
    # One direction.
    cdef bint of_response
    cdef int mode                    # LaneMode
    cdef bint watches_end            # trailers go to the processor before they go on
    cdef bint full                   # what is gathered has reached its limit
    cdef bint ended                  # the source has sent all of it
    cdef bint finished               # all has gone on
    cdef Py_ssize_t limit
    cdef ByteBuffer held
    cdef MessageHead trailers        # of the source

    cdef int keep(self, const char* p, Py_ssize_t n) except -1
    # What was kept, or its first `most` bytes; below 0: all.
    cdef bytes take(self, Py_ssize_t most)

cdef Lane new_lane(bint of_response)
