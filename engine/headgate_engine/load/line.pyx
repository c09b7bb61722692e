"""A connection of a generator; see line.pxd."""

from headgate_engine.load.core cimport SCRATCH
from headgate_engine.load.request cimport LoadRequest
from headgate_engine.load.stamp cimport hg_recv_stamped, hg_stamp
from headgate_engine.tls.connection cimport TLS_ENDED, TLS_FAILED, TLS_HANDSHAKE, TlsConnection
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.errno cimport EAGAIN, EINPROGRESS, EINTR, errno
from libc.stdint cimport int64_t, uint32_t, uint64_t

import errno as names
import socket

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        uint64_t u64
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_ctl(int epfd, int op, int fd, epoll_event* event)
    int EPOLL_CTL_ADD, EPOLL_CTL_MOD
    uint32_t EPOLLIN, EPOLLOUT

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void* data, size_t n, int flags)
    ssize_t send(int fd, const void* data, size_t n, int flags)
    int MSG_DONTWAIT, MSG_NOSIGNAL

cdef enum:
    # An answer of that length is read as it comes: left to itself, it would fill the buffers of its connection, and wait.
    LONG_READ = 16384
    # So many reads in a row may not say when they came: the kernel begins to note it some time after it is asked to.
    MOST_UNTOLD = 16

# Until a connection is tried again that could not be made.
cdef int64_t PAUSE_NS = 100000000
cdef dict WORDS = {
    names.ECONNREFUSED: "refused", names.ECONNRESET: "reset", names.EPIPE: "reset", names.ETIMEDOUT: "timeout",
    names.EHOSTUNREACH: "unreachable", names.ENETUNREACH: "unreachable", names.EADDRNOTAVAIL: "no local port left",
    names.EMFILE: "no descriptors left", names.ENFILE: "no descriptors left",
}


cdef str word_of(int error):
    return WORDS.get(error) or names.errorcode.get(error, "error").lower()


cdef class LoadLine:
    def __cinit__(self):
        self.fd = -1
        self.outbox = ByteBuffer()

    # -- what protocols do -------------------------------------------------------------------------------------------
    cdef int opened(self, int64_t now_ns) except -1:
        raise NotImplementedError("LoadLine.opened")

    cdef Py_ssize_t room(self) noexcept:
        return 0

    cdef int begin(self, LoadRequest request, int64_t due_ns, int64_t now_ns) except -1:
        raise NotImplementedError("LoadLine.begin")

    cdef int push(self, int64_t now_ns) except -1:
        return 0

    cdef int received(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        raise NotImplementedError("LoadLine.received")

    cdef int ended(self, int64_t now_ns) except -1:
        return self.broken("closed before the answer's end", now_ns)

    cdef int abandon(self, str kind, bint waited, int64_t now_ns) except -1:
        return 0

    cdef int64_t oldest_ns(self) noexcept:
        return 0

    # -- opening -----------------------------------------------------------------------------------------------------
    cdef int open(self, int64_t now_ns) except -1:
        cdef epoll_event event
        cdef int error
        try:
            self.socket = socket.socket(self.core.target.family, socket.SOCK_STREAM)
            self.socket.setblocking(False)
            if self.core.target.family != socket.AF_UNIX:
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            error = self.socket.connect_ex(self.core.target.address)
        except OSError as failure:
            error = failure.errno or names.EIO
        if error != 0 and error != EINPROGRESS:
            return self._failed(f"connect: {word_of(error)}", now_ns)
        self.fd = self.socket.fileno()
        self.state, self.opened_ns = LINE_CONNECTING, now_ns
        self.stamp()
        self.interest = event.events = EPOLLIN | EPOLLOUT
        event.data.u64 = <uint64_t>self.place
        if epoll_ctl(self.core.epoll, EPOLL_CTL_ADD, self.fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        return 0

    cdef int _failed(self, str kind, int64_t now_ns) except -1:
        self._drop()
        self.again_ns = now_ns + PAUSE_NS
        return self.core.unconnected(kind, now_ns)

    cdef int _connected(self, int64_t now_ns) except -1:
        cdef int error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            return self._failed(f"connect: {word_of(error)}", now_ns)
        self._watch(EPOLLIN)
        if self.core.target.tls is None:
            return self._ready(now_ns)
        self.state = LINE_HANDSHAKE
        self.tls = TlsConnection(self.core.target.tls, server_name=self.core.target.server_name,
                                 check_name=self.core.target.check_name, session=self.core.session)
        self.tls.handshake()
        return self._flush(now_ns)

    cdef int _ready(self, int64_t now_ns) except -1:
        self.state = LINE_READY
        self.served = False
        self.core.ready += 1
        self.opened(now_ns)
        return self.offer()

    cdef int offer(self) except -1:
        """Say how many more requests it can take."""
        cdef Py_ssize_t wanted
        if self.state != LINE_READY:
            return 0
        wanted = self.room()
        while self.offered < wanted:
            self.offered += 1
            self.core.release(self.place)
        return 0

    cdef int stamp(self) except -1:
        """Have reads say when they came, where the generator will want to know; what cannot say it counts from the read."""
        if self.core.stamped and self.fd >= 0:
            hg_stamp(self.fd)
        return 0

    # -- ending ------------------------------------------------------------------------------------------------------
    cdef int _drop(self) except -1:
        """Let go of the socket; its descriptor leaves epoll with it."""
        if self.state == LINE_READY:
            self.core.ready -= 1
        self.state = LINE_CLOSED
        # Not at once: the events that are being handled may be of the old descriptor, and the new one may have its number.
        self.core.closed.append(self)
        self.tls = None
        self.outbox.release()
        if self.socket is not None:
            self.socket.close()
            self.socket = None
        self.fd = -1
        return 0

    cdef int close(self, str kind, bint waited, int64_t now_ns) except -1:
        self._drop()
        return self.abandon(kind, waited, now_ns)

    cdef int broken(self, str kind, int64_t now_ns) except -1:
        if self.state == LINE_CONNECTING or self.state == LINE_HANDSHAKE:
            return self._failed(f"connect: {kind}", now_ns)
        if self.state == LINE_CLOSED:
            return 0
        self.close(kind, False, now_ns)
        self.core.ledger.reconnects += 1
        # A server that takes connections only to close them is not asked without a pause.
        self.again_ns = now_ns if self.served else now_ns + PAUSE_NS
        return 0

    cdef int overdue(self, int64_t before_ns, int64_t now_ns) except -1:
        if self.state == LINE_CONNECTING or self.state == LINE_HANDSHAKE:
            if self.opened_ns < before_ns:
                return self._failed("connect: timeout", now_ns)
            return 0
        if self.active and self.oldest_ns() < before_ns:
            self.close("timeout", True, now_ns)
            self.core.ledger.reconnects += 1
            self.again_ns = now_ns
        return 0

    # -- events ------------------------------------------------------------------------------------------------------
    cdef int on_event(self, uint32_t events, int64_t now_ns) except -1:
        if self.state == LINE_CLOSED:
            return 0
        if self.state == LINE_CONNECTING:
            self._connected(now_ns)
            if self.state < LINE_HANDSHAKE:
                return 0
        elif events & EPOLLOUT:
            self._flush(now_ns)
        if events & ~EPOLLOUT and self.state != LINE_CLOSED:
            return self.on_readable(now_ns)
        return 0

    cdef int64_t _came_ns(self, int64_t wall_ns, int64_t now_ns) noexcept:
        """Return when a read came; what the time of day says is not believed where the generator was awake, or it was set."""
        cdef int64_t came_ns = wall_ns - self.core.wall_offset_ns
        return came_ns if wall_ns and self.core.looked_ns <= came_ns <= now_ns else now_ns

    cdef int on_readable(self, int64_t now_ns) except -1:
        cdef int64_t wall_ns
        cdef ssize_t n
        if self.core.looked_ns:
            n = hg_recv_stamped(self.fd, self.core.scratch, SCRATCH, &wall_ns)
            now_ns = self._came_ns(wall_ns, now_ns)
            if n > 0:
                self.core.untold = 0 if wall_ns else self.core.untold + 1
            if n >= LONG_READ or self.core.untold > MOST_UNTOLD:
                self.core.stamped = False
        else:
            n = recv(self.fd, self.core.scratch, SCRATCH, MSG_DONTWAIT)
        if n > 0:
            if now_ns >= self.core.ledger.since_ns:
                self.core.ledger.bytes_read += <uint64_t>n
            if self.tls is not None:
                return self._decrypt(n, now_ns)
            return self.received(self.core.scratch, n, now_ns)
        if n == 0:
            if self.state == LINE_READY:
                return self.ended(now_ns)
            return self.broken("closed", now_ns)
        if errno == EAGAIN or errno == EINTR:
            return 0
        return self.broken(word_of(errno), now_ns)

    cdef int _decrypt(self, Py_ssize_t n, int64_t now_ns) except -1:
        cdef TlsConnection tls = self.tls
        cdef Py_ssize_t got
        tls.take(self.core.scratch, n)
        if tls.state == TLS_HANDSHAKE:
            tls.handshake()
            if tls.state == TLS_HANDSHAKE:
                return self._flush(now_ns)
            if tls.state == TLS_FAILED:
                return self.broken(f"tls: {tls.reason or tls.fault}", now_ns)
            self._ready(now_ns)
        while self.tls is tls:
            got = tls.read(self.core.opened, SCRATCH)
            if got == 0:
                break
            self.received(self.core.opened, got, now_ns)
        if self.tls is tls:
            if tls.state == TLS_FAILED:
                return self.broken(f"tls: {tls.reason or tls.fault}", now_ns)
            if tls.state == TLS_ENDED:
                return self.ended(now_ns)
            return self._flush(now_ns)
        return 0

    # -- sending -----------------------------------------------------------------------------------------------------
    cdef int transmit(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        if self.state != LINE_READY or n == 0:
            return 0
        if self.tls is None:
            return self._write(p, n, now_ns)
        if not self.tls.write(p, n):
            return self.broken(f"tls: {self.tls.reason or self.tls.fault}", now_ns)
        return self._flush(now_ns)

    cdef int _write(self, const char* p, Py_ssize_t n, int64_t now_ns) except -1:
        cdef ssize_t sent
        if self.outbox.length == 0:
            sent = send(self.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL)
            if sent == n:
                return 0
            if sent < 0:
                if errno != EAGAIN and errno != EINTR:
                    return self.broken(word_of(errno), now_ns)
                sent = 0
            p += sent
            n -= sent
        self.core.stamped = False                # the rest leaves as soon as there is room, also before the next request is due
        self.outbox.append(p, n)
        return self._watch(EPOLLIN | EPOLLOUT)

    cdef int _flush(self, int64_t now_ns) except -1:
        cdef ssize_t sent
        cdef ByteBuffer out
        if self.tls is not None and self.tls.out.length:
            out = self.tls.out
            if self.outbox.length == 0:
                self._write(out.data, out.length, now_ns)
            else:
                self.outbox.append(out.data, out.length)
            out.clear()
            return 0
        if self.outbox.length == 0:
            return 0
        sent = send(self.fd, self.outbox.data, self.outbox.length, MSG_DONTWAIT | MSG_NOSIGNAL)
        if sent < 0:
            if errno == EAGAIN or errno == EINTR:
                return 0
            return self.broken(word_of(errno), now_ns)
        self.outbox.consume(sent)
        if self.outbox.length == 0:
            self.outbox.release()
            return self._watch(EPOLLIN)
        return 0

    cdef int _watch(self, uint32_t interest) except -1:
        cdef epoll_event event
        if self.interest == interest or self.fd < 0:
            return 0
        self.interest = event.events = interest
        event.data.u64 = <uint64_t>self.place
        if epoll_ctl(self.core.epoll, EPOLL_CTL_MOD, self.fd, &event) < 0:
            raise OSError(errno, "epoll_ctl")
        return 0
