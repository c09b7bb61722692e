# The loop of a load generator: it sends what is due, reads what comes, and holds the GIL of a process that does nothing else.

from headgate_engine.load.core cimport LoadCore

from libc.stdint cimport int64_t

cdef class Generator(LoadCore):
    cdef list lines                  # LoadLine
    cdef int64_t timeout_ns, grace_ns, sweep_ns
    cdef int64_t polled_ns           # the last look at all connections
    cdef bint finished

    cdef bint _run(self, int64_t until_ns) except -1
    cdef int _dispatch(self, int64_t now_ns) except -1
    cdef bint _gathers(self) except -1
    cdef int _sleep(self, int64_t until_ns) except -1
    cdef int _poll(self, int64_t until_ns) except -1
    cdef int _reopen(self, int64_t now_ns) except -1
    cdef int _push(self, int64_t now_ns) except -1
    cdef int _sweep(self, int64_t now_ns) except -1
    cdef bint _over(self, int64_t now_ns) except -1
    cdef int _give_up(self, int64_t now_ns) except -1
