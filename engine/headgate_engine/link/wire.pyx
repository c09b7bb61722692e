"""Socket output of connections; see wire.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from headgate_engine.link.reads cimport Readable
from headgate_engine.link.secure cimport SecureTransport
from headgate_engine.link.contract cimport WRITE_DONE, WRITE_FAILED, WRITE_QUEUED
from headgate_engine.link.worker cimport Worker
from headgate_engine.wire.buffer cimport ByteBuffer

import os

cdef extern from "<sys/uio.h>" nogil:
    cdef struct iovec:
        void* iov_base
        size_t iov_len

cdef extern from "<sys/socket.h>" nogil:
    cdef struct msghdr:
        void* msg_name
        unsigned int msg_namelen
        iovec* msg_iov
        size_t msg_iovlen
        void* msg_control
        size_t msg_controllen
        int msg_flags
    ssize_t sendmsg(int fd, const msghdr* message, int flags)
    ssize_t send(int fd, const void* data, size_t n, int flags)
    ssize_t recv(int fd, void* data, size_t n, int flags)
    int MSG_PEEK
    int MSG_NOSIGNAL
    int MSG_DONTWAIT


cdef inline Py_ssize_t _send(int fd, const char* head, Py_ssize_t head_len,
                             const char* tail, Py_ssize_t tail_len) noexcept nogil:
    """Bytes the kernel took, 0 when it takes none now, -1 when the connection is broken."""
    cdef iovec parts[2]
    cdef msghdr message
    cdef Py_ssize_t sent
    while True:
        if tail_len == 0:
            sent = send(fd, head, head_len, MSG_NOSIGNAL | MSG_DONTWAIT)
        elif head_len == 0:
            sent = send(fd, tail, tail_len, MSG_NOSIGNAL | MSG_DONTWAIT)
        else:
            memset(&message, 0, sizeof(message))
            parts[0].iov_base = <void*>head
            parts[0].iov_len = head_len
            parts[1].iov_base = <void*>tail
            parts[1].iov_len = tail_len
            message.msg_iov = parts
            message.msg_iovlen = 2
            sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
        if sent >= 0:
            return sent
        if errno == EINTR:
            continue
        if errno == EAGAIN:
            return 0
        return -1


cdef bytes _rest(const char* head, Py_ssize_t head_len, const char* tail, Py_ssize_t tail_len, Py_ssize_t skip):
    """What is left of head + tail after `skip` bytes."""
    cdef Py_ssize_t total = head_len + tail_len - skip
    cdef bytes rest = PyBytes_FromStringAndSize(NULL, total)
    cdef char* to = PyBytes_AS_STRING(rest)
    if skip < head_len:
        memcpy(to, head + skip, head_len - skip)
        if tail_len:
            memcpy(to + head_len - skip, tail, tail_len)
    else:
        memcpy(to, tail + (skip - head_len), total)
    return rest


cdef class Wire(Readable):
    def __cinit__(self):
        self.fd = -1

    cdef int on_timer(self, int64_t now_ns) except -1:
        if self.owner is not None:
            self.owner.on_timer(now_ns)
        return 0

    cdef int attach(self, transport) except -1:
        self.transport = transport
        self.fd = -1
        # Queue limits of zero: pause_writing/resume_writing then mean "something is queued" and "nothing is".
        transport.set_write_buffer_limits(high=0)
        if isinstance(transport, SecureTransport):
            self.tls = <SecureTransport>transport
            self.tls.attach(self, self.worker)
        elif transport.get_extra_info("sslcontext") is None:
            # The loop has set TCP_NODELAY.
            sock = transport.get_extra_info("socket")
            if sock is not None:
                self.fd = sock.fileno()
        return 0

    # -- reading -------------------------------------------------------------------------------------------------------
    cdef int read_by_loop(self) except -1:
        if self.fd >= 0 and not self.own_reads and not self.reading_paused and not self.closing:
            self.own_reads = True
            self.transport.pause_reading()
            self.worker.reads.add(self, self.fd)
        return 0

    cdef int on_bytes(self, Py_ssize_t n) except -1:
        owner = self.owner
        if owner is not None:
            owner.buffer_updated(n)
        return 0

    cdef int on_end(self, int error) except -1:
        owner = self.owner
        if owner is None:
            return 0
        if error:
            self.read_error = OSError(error, os.strerror(error))
            return self.abort_wire()
        if not owner.eof_received():
            return self.close_wire()
        return 0

    cdef int pause_wire(self) except -1:
        if not self.reading_paused and self.transport is not None and not self.closing:
            self.reading_paused = True
            if self.tls is not None:
                return self.tls.pause()
            if not self.own_reads:
                self.transport.pause_reading()
        return 0

    cdef int resume_wire(self) except -1:
        if self.reading_paused and self.transport is not None and not self.closing:
            self.reading_paused = False
            if self.tls is not None:
                return self.tls.resume()
            if self.own_reads:
                return self.worker.reads.watch(self)
            self.transport.resume_reading()
        return 0

    # -- writing -------------------------------------------------------------------------------------------------------
    cdef int write_out(self, ByteBuffer out, const char* tail, Py_ssize_t tail_len) except -1:
        cdef Py_ssize_t sent = 0
        cdef Py_ssize_t total = out.length + tail_len
        cdef int result
        if total == 0:
            return WRITE_QUEUED if self.queued else WRITE_DONE
        if self.write_broken or self.transport is None or self.closing:
            out.clear()
            return WRITE_FAILED
        if self.fd >= 0 and not self.queued:
            sent = _send(self.fd, out.data, out.length, tail, tail_len)
            if sent == total:
                out.clear()
                return WRITE_DONE
            if sent < 0:
                out.clear()
                self.write_broken = True
                return WRITE_FAILED
        if self.tls is not None:
            result = self.tls.write_out(out, tail, tail_len)
            self.queued = result == WRITE_QUEUED
            self.write_broken = result == WRITE_FAILED
            return result
        rest = _rest(out.data, out.length, tail, tail_len, sent)
        out.clear()
        self.transport.write(rest)
        self.queued = self.transport.get_write_buffer_size() > 0
        return WRITE_QUEUED if self.queued else WRITE_DONE

    cdef bint drained(self) except -1:
        # Under TLS the loop tells of an empty queue one turn late, often behind the answer to what was in it.
        return not self.queued or self.transport is not None and self.transport.get_write_buffer_size() == 0

    cdef bint no_pending_input(self) except -1:
        cdef char byte
        cdef int fd = self.fd
        if fd < 0:
            sock = None if self.transport is None else self.transport.get_extra_info("socket")
            fd = -1 if sock is None else sock.fileno()
            if fd < 0:
                return True
        return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 and errno == EAGAIN

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int close_wire(self) except -1:
        if self.transport is not None and not self.closing:
            self.closing = True
            self.fd = -1
            self.worker.reads.remove(self)
            self.transport.close()
        return 0

    cdef int abort_wire(self) except -1:
        if self.transport is not None:
            self.worker.reads.remove(self)
            self.closing = True
            self.fd = -1
            self.transport.abort()
        return 0

    cdef int detach(self) except -1:
        self.worker.timers.remove(self)
        self.worker.reads.remove(self)
        self.owner = None
        self.transport = None
        self.fd = -1
        self.closing = True
        self.queued = False
        return 0


cdef Wire wired(Wire wire, Worker worker, owner):
    wire.worker = worker
    wire.owner = owner
    return wire
