"""Connections to backends that answer nothing any more; see doubt.pxd."""

from headgate_engine.http2.session cimport Http2Session

from libc.stdint cimport int64_t

# Calls in a row that are given up while the window of the connection is shut.
MOST_STARVED = 3
cdef int most_starved = MOST_STARVED
# How long a peer has for the answer to a PING. Clients that leave early are no reason to doubt a peer that answers it.
cdef int64_t PONG_NS = 5000000000


cdef bint doubtful(Http2Session session, int* starved, int64_t now_ns) except -1:
    starved[0] = starved[0] + 1 if session.send_window <= 0 else 0
    if starved[0] >= most_starved or session.pinged_ns and now_ns - session.pinged_ns >= PONG_NS:
        return True
    session.now_ns = now_ns
    session.ping()
    return False
