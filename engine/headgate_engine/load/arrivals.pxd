# When requests are due. In an open loop that is said by the rate alone, whatever the target does: request i is due at
# start + i / rate. One that is sent late, because all connections are taken or the target stands still, keeps the time at which
# it was due, and its latency counts from there. What is left out otherwise is known as coordinated omission.
#
# There is no queue: what has been due and was not sent is a difference of two numbers.

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>
    #define HG_NEVER INT64_MAX
    """
    const int64_t NEVER "HG_NEVER"

cdef class Arrivals:
    cdef readonly int64_t start_ns, end_ns
    cdef readonly double rate            # a second; 0: a closed loop, in which the next is due when a connection is free
    cdef readonly int64_t taken          # requests that were handed out
    cdef readonly int64_t total          # of an open loop
    cdef double step_ns

    cdef int64_t due_ns(self, int64_t number) noexcept
    # When the next request is due; NEVER: there is none left.
    cdef int64_t next_ns(self, int64_t now_ns) noexcept
    # When the last of the requests is due that are due at most `span_ns` after the next one, which there must be.
    cdef int64_t gathered_ns(self, int64_t now_ns, int64_t span_ns) noexcept
    # Hands out the next request, which there must be; returns when it was due.
    cdef int64_t take(self, int64_t now_ns) noexcept
