"""Connections to backends that carry bytes as they are; see tcp_upstream.pxd."""

from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.link.contract cimport (
    WRITE_DONE, WRITE_FAILED, WRITE_QUEUED, ClientConnection, ClientStream, ConnectionOwner, ResponseSink, UpstreamProtocol)
from headgate_engine.link.wire cimport Wire, wired
from headgate_engine.link.worker cimport SCRATCH_SIZE, Worker

import logging
import socket
import struct

logger = logging.getLogger("headgate.upstream")

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int fd, void* data, size_t n, int flags)
    int MSG_DONTWAIT

# SO_LINGER with no time to linger (socket(7)): the connection ends with a reset.
cdef bytes NO_LINGER = struct.pack("ii", 1, 0)


cdef class BurstWire(Wire):
    cdef int hand_over(self, Py_ssize_t n) except -1:
        raise NotImplementedError("BurstWire.hand_over")

    cdef int on_bytes(self, Py_ssize_t n) except -1:
        cdef int reads = 1
        cdef int error
        self.hand_over(n)
        # Another read of a socket that has more is cheaper than another turn of the loop.
        while n == SCRATCH_SIZE and reads < MOST_READS and self.place >= 0 and not self.reading_paused:
            n = recv(self.read_fd, self.worker.scratch, SCRATCH_SIZE, MSG_DONTWAIT)
            if n > 0:
                self.hand_over(n)
            elif n < 0:
                error = errno
                if error != EAGAIN and error != EINTR:
                    # The socket tells of it once.
                    self.worker.reads.remove(self)
                    return self.on_end(error)
            reads += 1
        return 0

    cdef int end_output(self) except -1:
        if self.transport is None or self.closing:
            return 0
        if self.tls is not None:
            return self.tls.end_output()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.close_wire()
        return 0

    cdef int reset(self) except -1:
        if self.transport is None:
            return 0
        sock = self.transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            except OSError:
                pass          # it is closed already
        return self.abort_wire()


cdef class TcpUpstreamWire(BurstWire):
    cdef int hand_over(self, Py_ssize_t n) except -1:
        cdef TcpUpstreamConnection connection = <TcpUpstreamConnection>self.owner
        return 0 if connection is None else connection.read(n)


cdef class TcpUpstreamConnection(ClientConnection):
    def __init__(self, Worker worker not None, ConnectionOwner owner not None):
        self.worker = worker
        self.owner = owner
        self.wire = wired(TcpUpstreamWire.__new__(TcpUpstreamWire), worker, self)

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.wire.attach(transport)
        self.owner.connection_opened(self)
        if not self.called:
            self.close()          # whoever wanted it has left

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        self.read(n)
        self.wire.read_by_loop()

    cdef int read(self, Py_ssize_t n) except -1:
        cdef ResponseSink sink = self.sink
        try:
            return 0 if sink is None else sink.on_upstream_tunnel_data(self.worker.scratch, n)
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("upstream connection failed")
            return self._fail("internal error")

    def eof_received(self):
        cdef ResponseSink sink = self.sink
        try:
            if sink is not None:
                sink.on_upstream_eof()
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
            self._fail("internal error")
        return self.sink is not None

    def connection_lost(self, exc):
        cdef Wire wire = self.wire
        self.lost = True
        exc = exc or wire.read_error
        try:
            self._fail("connection closed" if exc is None else f"connection lost: {exc}")
            self.owner.connection_closed(self)
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
        wire.detach()

    def pause_writing(self):
        self.wire.queued = True

    def resume_writing(self):
        cdef ResponseSink sink = self.sink
        self.wire.queued = False
        if sink is not None:
            try:
                sink.on_upstream_writable()
            except Exception:  # task boundary
                logger.exception("upstream connection failed")
                self._fail("internal error")

    def on_timer(self, now_ns):
        self.close()

    # -- ClientConnection --------------------------------------------------------------------------------------------
    cdef int capacity(self) noexcept:
        return 0 if self.called or self.lost or self.wire.closing else 1

    cdef ClientStream begin_stream(self, ResponseSink sink):
        cdef TcpUpstreamStream stream = TcpUpstreamStream.__new__(TcpUpstreamStream)
        stream.connection = self
        self.sink = sink
        self.called = True
        self.active = 1
        return stream

    cdef bint no_pending_input(self) except -1:
        return self.wire.fd < 0 or self.wire.no_pending_input()

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        return self.worker.timers.arm(self.wire, deadline_ns)

    cdef int close(self) except -1:
        if not self.lost:
            self.wire.abort_wire()
        return 0

    cdef int finish(self) except -1:
        self.sink = None
        self.active = 0
        if not self.lost:
            self.wire.close_wire()
        return 0

    cdef int reset(self) except -1:
        self.sink = None
        self.active = 0
        if not self.lost:
            (<BurstWire>self.wire).reset()
        return 0

    cdef int _fail(self, str detail) except -1:
        cdef ResponseSink sink = self.sink
        self.sink = None
        self.active = 0
        self.close()
        return 0 if sink is None else sink.on_upstream_failed(True, detail)


cdef class TcpUpstreamStream(ClientStream):
    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef TcpUpstreamConnection connection = self.connection
        if connection.sink is None:
            return WRITE_FAILED
        return connection.wire.write_out(connection.worker.to_upstream, p, n)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        return self.send_tunnel_data(p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        return self.write_eof()

    cdef int start_tunnel(self) except -1:
        return 0                  # it is nothing else

    cdef int flush(self) except -1:
        return WRITE_QUEUED if self.connection.wire.queued else WRITE_DONE

    cdef bint reused(self) noexcept:
        return False

    cdef bint unprocessed(self) noexcept:
        return False

    cdef bint congested(self) noexcept:
        return self.connection.wire.queued

    cdef int pause_response(self) except -1:
        return self.connection.wire.pause_wire()

    cdef int resume_response(self) except -1:
        return self.connection.wire.resume_wire()

    cdef int write_eof(self) except -1:
        return (<BurstWire>self.connection.wire).end_output()

    cdef int cancel(self) except -1:
        return self.connection.finish()


cdef class TcpUpstream(UpstreamProtocol):
    """Bytes as they are: one call on each connection."""

    def __init__(self, Worker worker not None):
        self.name = "tcp"
        self.streams = 1
        self.worker = worker

    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        return TcpUpstreamConnection(self.worker, owner)
