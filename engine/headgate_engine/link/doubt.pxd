# Whether a connection of HTTP/2 to a backend is still worth a call. A peer that has vanished without a FIN, or that takes nothing
# more, keeps its connection open: each call would run into its time-out there, for as long as the kernel sends again.

from headgate_engine.http2.session cimport Http2Session

from libc.stdint cimport int64_t

# A call was given up before its answer began: looks whether the peer lives. True: the connection is to take no more calls.
# `starved`: how many calls in a row were given up while the peer took no DATA; an answer sets it to 0.
cdef bint doubtful(Http2Session session, int* starved, int64_t now_ns) except -1
