# Plain sockets that a worker reads by itself. The loop tells once per turn that some are readable; each is then read with
# one recv(2), without a call into Python, a lock of the interpreter or a buffer of its own.

from headgate_engine.link.timers cimport Timer

from libc.stdint cimport uint32_t, uint64_t

cdef class Readable(Timer):
    # A socket that may be a member of a ReadSet.
    cdef int read_fd             # of a member
    cdef Py_ssize_t place        # in the set; -1: no member
    cdef uint32_t joined         # which joining of the set it was: an event of a former member is not taken for one of this
    cdef bint watched            # the kernel reports when it can be read
    cdef bint reading_paused     # nothing is read; bytes wait in the socket
    # The worker's scratch memory has n bytes, n > 0. They are used up when it returns.
    cdef int on_bytes(self, Py_ssize_t n) except -1
    # The peer has closed its half (error 0), or the connection is broken (an errno). It is no member any more.
    cdef int on_end(self, int error) except -1

cdef class ReadSet:
    cdef object loop
    cdef char* scratch           # of the worker
    cdef Py_ssize_t room         # its size
    cdef int fd                  # of the epoll set; -1 before there is a member
    cdef list members            # Readable by place; None: nobody
    cdef list vacant             # places without a member
    cdef uint32_t joins

    cdef int add(self, Readable one, int fd) except -1
    # Reads on after a pause.
    cdef int watch(self, Readable one) except -1
    # To be called while the descriptor is open: its number may be given to another socket then.
    cdef int remove(self, Readable one) except -1
    cdef int _unwatch(self, Readable one) noexcept
    cdef int _read(self, uint64_t event) except -1
