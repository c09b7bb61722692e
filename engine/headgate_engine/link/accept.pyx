"""Shared listening sockets; see accept.pxd."""

cimport cython
from libc.errno cimport ENOENT, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.link.worker cimport Worker
from headgate_engine.shared.loads cimport WorkerLoads

import asyncio
import os
import zlib

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        int fd
        uint64_t u64
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    enum:
        EPOLL_CTL_ADD
        EPOLL_CTL_DEL
        EPOLL_CTL_MOD
        EPOLLIN
        EPOLLET
        EPOLLEXCLUSIVE
        EPOLLONESHOT

cdef extern from "<poll.h>" nogil:
    cdef struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* fds, unsigned long n, int timeout)
    short POLLIN

cdef extern from "<unistd.h>" nogil:
    ssize_t write(int fd, const void* data, size_t n)

cdef enum:
    # Turns of the loop within which libuv puts a new socket into its epoll set.
    TURNS = 10
    # Connections that a function accepts in one turn of the loop.
    BATCH = 8
    # How often in a row a connection is left to others.
    MOST_LEAVES = 3

# How long a connection that was left to another worker waits for it, in seconds.
LEAVE_SECONDS = 0.005
# How often a worker looks for connections that nobody was woken up for, in seconds.
LOOK_SECONDS = 1.0


cdef int _control(int epoll_fd, int op, int fd, uint32_t events, int number) noexcept nogil:
    """epoll_ctl(2) with the number of another descriptor in the data; -1: errno says why not."""
    cdef epoll_event event
    event.data.u64 = 0
    event.data.fd = number
    event.events = events
    return epoll_ctl(epoll_fd, op, fd, &event)


cdef bint _waiting(int fd) noexcept nogil:
    """Called when a connection waits in the queue of a listening socket."""
    cdef pollfd one
    one.fd, one.events, one.revents = fd, POLLIN, 0
    return poll(&one, 1, 0) == 1


def epoll_descriptor(loop):
    try:
        fd = loop._get_backend_id()
        return fd if os.readlink(f"/proc/self/fd/{fd}") == "anon_inode:[eventpoll]" else -1
    except (AttributeError, OSError):
        return -1


@cython.final
cdef class SharedAccept:
    def __init__(self, Worker worker not None, WorkerLoads loads not None, tuple wake_fds not None):
        if len(wake_fds) != loads.workers:
            raise ValueError(f"{loads.workers} workers need an eventfd each")
        for fd in wake_fds:
            if <int?>fd < 0:
                raise ValueError("an eventfd is not negative")
        self.epoll_fd = epoll_descriptor(worker.loop)
        if self.epoll_fd < 0:
            raise ValueError("the loop does not stand on epoll")
        worker.share_loads(loads)
        self.worker = worker
        self.loads = loads
        self.wake_fds = wake_fds
        self.ports = {}

    def start(self):
        self.worker.loop.add_reader(self.wake_fds[self.worker.index], self._on_call)
        self.loads.accept(self.worker.index, True)
        self.timer = self.worker.loop.call_later(LOOK_SECONDS, self._look)

    def stop(self):
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.worker.loop.remove_reader(self.wake_fds[self.worker.index])
        self.loads.accept(self.worker.index, False)

    def leave(self):
        self.loads.accept(self.worker.index, False)

    cdef int call(self, int worker, uint64_t port, int64_t now_ns) except -1:
        cdef uint64_t one = 1
        cdef int fd = self.wake_fds[worker]
        self.loads.call(worker, port, now_ns)
        # EAGAIN: the counter is full, so the worker is awake or stalled.
        write(fd, &one, sizeof(one))
        return 0

    def _look(self):
        cdef SharedPort port
        self.timer = self.worker.loop.call_later(LOOK_SECONDS, self._look)
        for port in list(self.ports.values()):
            if _waiting(port.fd):
                port.accept_waiting(True)

    def _on_call(self):
        cdef uint64_t called
        cdef SharedPort port
        try:
            os.eventfd_read(self.wake_fds[self.worker.index])
        except BlockingIOError:
            pass
        called = self.loads.clear_call(self.worker.index)
        for port in list(self.ports.values()):
            if port.bit & called:
                port.accept_waiting(True)


@cython.final
cdef class SharedPort:
    def __cinit__(self):
        self.fd = self.server_fd = self.ready_fd = self.accept_fd = -1

    def __init__(self, SharedAccept accept not None, int fd, str key not None, factory, take=None):
        self.accept = accept
        self.fd = fd
        self.bit = <uint64_t>1 << (zlib.crc32(key.encode()) & 63)
        self.factory = factory
        self.take = take

    def __dealloc__(self):
        for fd in (self.ready_fd, self.accept_fd):
            if fd >= 0:
                os.close(fd)

    async def start(self, int server_fd=-1):
        if self.accept is None or self.ready_fd >= 0:
            raise ValueError("the port is in use")
        if (server_fd < 0) == (self.take is None):
            raise ValueError("either libuv accepts connections, or a function does")
        if server_fd >= 0:
            await self._withdraw(server_fd)
        try:
            self._add(server_fd)
        except BaseException:
            self.stop()
            raise

    def _add(self, int server_fd):
        """Puts the descriptors into the epoll set of the loop."""
        cdef int epoll_fd = self.accept.epoll_fd
        cdef int fd
        if server_fd >= 0:
            fd = self.accept_fd = os.eventfd(1, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self.server_fd = server_fd
            if _control(epoll_fd, EPOLL_CTL_ADD, fd, 0, server_fd) < 0:
                raise OSError(errno, os.strerror(errno))
        fd = self.ready_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.accept.worker.loop.add_reader(fd, self._on_ready)
        if _control(epoll_fd, EPOLL_CTL_ADD, self.fd, EPOLLIN | EPOLLET | EPOLLEXCLUSIVE, fd) < 0:
            raise OSError(errno, os.strerror(errno))
        self.accept.ports[self.fd] = self

    async def _withdraw(self, int server_fd):
        """Takes a socket out of the epoll set that libuv puts it into, at the end of a turn of the loop."""
        for _turn in range(TURNS):
            if _control(self.accept.epoll_fd, EPOLL_CTL_DEL, server_fd, 0, 0) == 0:
                return
            if errno != ENOENT:
                break
            await asyncio.sleep(0)
        raise OSError(errno, os.strerror(errno))

    def stop(self):
        cdef int ready = self.ready_fd
        cdef int accept = self.accept_fd
        self.ready_fd = self.accept_fd = self.server_fd = -1
        self.armed = False
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        if ready >= 0:
            # Closing is not enough: other processes have this socket, too.
            _control(self.accept.epoll_fd, EPOLL_CTL_DEL, self.fd, 0, 0)
            self.accept.ports.pop(self.fd, None)
            self.accept.worker.loop.remove_reader(ready)
            os.close(ready)
        if accept >= 0:
            os.close(accept)

    def connect(self):
        connection = self.factory()
        self.armed = False
        self.accept.worker.connection_accepted(connection)
        if self.take is None and _waiting(self.fd):
            self.accept_waiting(True)
        return connection

    def failed(self, connection):
        self.accept.worker.connection_lost(connection)

    def _on_ready(self):
        self.accept_waiting(True)

    def _on_timer(self):
        self.timer = None
        if _waiting(self.fd):
            self.accept_waiting(self.left < MOST_LEAVES)

    cdef int accept_waiting(self, bint leave) except -1:
        """Accepts a waiting connection, or wakes a worker with fewer connections (leave). Another worker may have taken
        it."""
        cdef SharedAccept accept = self.accept
        cdef int _turn
        if self.armed:
            # That connection counts before another one is accepted.
            self.armed = False
            accept.worker.loop.call_soon(self._on_ready)
            return 0
        for _turn in range(BATCH):
            if self.ready_fd < 0 or leave and self._leave():
                return 0
            self.left = 0
            if self.take is None:
                # connect() goes on. Not if another worker was faster: nobody learns of that.
                self.armed = True
                if _control(accept.epoll_fd, EPOLL_CTL_MOD, self.accept_fd, EPOLLIN | EPOLLONESHOT,
                            self.server_fd) < 0:
                    raise OSError(errno, os.strerror(errno))
                return 0
            self.take()
            if not _waiting(self.fd):
                return 0
            leave = True
        accept.worker.loop.call_soon(self._on_ready)
        return 0

    cdef int _leave(self) except -1:
        """True if a worker with fewer connections was woken to accept, or if another worker has accepted."""
        cdef SharedAccept accept = self.accept
        cdef int64_t now = monotonic_ns()
        cdef int other = accept.loads.less_loaded(accept.worker.index, now)
        if other < 0:
            return False
        if not _waiting(self.fd):
            return True
        accept.call(other, self.bit, now)
        if self.timer is None:
            self.left += 1
            self.timer = accept.worker.loop.call_later(LEAVE_SECONDS, self._on_timer)
        return True
