"""Reading of plain sockets; see reads.pxd."""

from cpython.list cimport PyList_GET_ITEM
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport uint32_t, uint64_t
from posix.unistd cimport close

import logging
import os

logger = logging.getLogger("headgate.reads")

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        uint64_t u64
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    int epoll_wait(int epfd, epoll_event* events, int maxevents, int timeout)
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL
    uint32_t EPOLLIN

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void* data, size_t n, int flags)
    int MSG_DONTWAIT

cdef enum:
    # Sockets that are read in one turn of the loop; the others come in the next one.
    BATCH = 64


cdef class Readable(Timer):
    def __cinit__(self):
        self.read_fd = -1
        self.place = -1

    cdef int on_bytes(self, Py_ssize_t n) except -1:
        raise NotImplementedError("Readable.on_bytes")

    cdef int on_end(self, int error) except -1:
        raise NotImplementedError("Readable.on_end")


cdef class ReadSet:
    def __cinit__(self):
        self.fd = -1

    def __init__(self, loop):
        self.loop = loop
        self.members = []
        self.vacant = []

    def __dealloc__(self):
        if self.fd >= 0:
            close(self.fd)

    def __len__(self):
        return len(self.members) - len(self.vacant)

    cdef int add(self, Readable one, int fd) except -1:
        if self.fd < 0:
            self.fd = epoll_create1(EPOLL_CLOEXEC)
            if self.fd < 0:
                raise OSError(errno, os.strerror(errno))
            self.loop.add_reader(self.fd, self._ready)
        if self.vacant:
            one.place = self.vacant.pop()
            self.members[one.place] = one
        else:
            one.place = len(self.members)
            self.members.append(one)
        self.joins += 1
        one.joined = self.joins
        one.read_fd = fd
        return self.watch(one)

    cdef int watch(self, Readable one) except -1:
        cdef epoll_event event
        if one.watched or one.place < 0:
            return 0
        event.events = EPOLLIN
        event.data.u64 = <uint64_t>one.joined << 32 | <uint32_t>one.place
        if epoll_ctl(self.fd, EPOLL_CTL_ADD, one.read_fd, &event) != 0:
            raise OSError(errno, os.strerror(errno))
        one.watched = True
        return 0

    cdef int _unwatch(self, Readable one) noexcept:
        cdef epoll_event event
        if one.watched:
            one.watched = False
            epoll_ctl(self.fd, EPOLL_CTL_DEL, one.read_fd, &event)
        return 0

    cdef int remove(self, Readable one) except -1:
        if one.place < 0:
            return 0
        self._unwatch(one)
        self.vacant.append(one.place)
        place, one.place = one.place, -1
        one.read_fd = -1
        self.members[place] = None
        return 0

    def _ready(self):
        cdef epoll_event[BATCH] events
        cdef int at = 0
        cdef int count = epoll_wait(self.fd, events, BATCH, 0)
        while at < count:
            try:
                while at < count:      # in here: the handler is set up once, not for each event
                    at += 1
                    self._read(events[at - 1].data.u64)
            except Exception:  # task boundary: a fault of one connection must not keep the others from being read
                logger.exception("reading failed")

    cdef int _read(self, uint64_t event) except -1:
        cdef Readable one = <Readable>PyList_GET_ITEM(self.members, <Py_ssize_t><uint32_t>event)
        cdef Py_ssize_t n
        cdef int error
        if one is None or one.joined != <uint32_t>(event >> 32):
            return 0              # it left while this batch was under way
        if one.reading_paused:
            # Most pauses are over before anything comes: only now is the kernel told.
            return self._unwatch(one)
        n = recv(one.read_fd, self.scratch, self.room, MSG_DONTWAIT)
        if n > 0:
            return one.on_bytes(n)
        error = 0 if n == 0 else errno
        if error == EAGAIN or error == EINTR:
            return 0
        self.remove(one)
        return one.on_end(error)

    def close(self):
        """Stops reading."""
        if self.fd >= 0:
            self.loop.remove_reader(self.fd)
            close(self.fd)
            self.fd = -1
        for one in self.members:
            if one is not None:
                (<Readable>one).place = (<Readable>one).read_fd = -1
                (<Readable>one).watched = False
        self.members = []
        self.vacant = []
