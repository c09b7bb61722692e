# The clocks of the engine, in ns. Deadlines and durations are of the monotonic one; only what is written for others to
# read has the time of day.

from libc.stdint cimport int64_t
from libc.time cimport time_t

cdef extern from "<time.h>" nogil:
    ctypedef int clockid_t
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int clock_gettime(clockid_t clock, timespec* value)
    clockid_t CLOCK_MONOTONIC
    clockid_t CLOCK_REALTIME

cdef inline int64_t monotonic_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec

cdef inline int64_t wall_ns() noexcept nogil:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t>now.tv_sec * 1000000000 + now.tv_nsec
