"""HTTP/1.1 connections to backends; see upstream.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.http1.codec cimport Http1Codec
from headgate_engine.http1.kinds cimport (
    BODY_CHUNKED, BODY_LENGTH, BODY_NONE, EV_CLOSED, EV_DATA, EV_END, EV_HEAD, EV_INFORMATIONAL, EV_UPGRADED, ROLE_CLIENT)
from headgate_engine.http1.receiver cimport ReceiverLimits
from headgate_engine.link.contract cimport (
    SIZE_KNOWN, SIZE_NONE, WRITE_FAILED, ClientConnection, ClientStream, ConnectionOwner, ResponseSink, UpstreamProtocol)
from headgate_engine.link.wire cimport Wire, wired
from headgate_engine.link.worker cimport Worker

from headgate_engine.errors import RemoteProtocolError

import logging

logger = logging.getLogger("headgate.upstream")

# Body pieces up to this size are copied behind the head; longer ones are written from where they lie.
cdef enum:
    COPY_LIMIT = 2048
    # Informational responses to one request. Servers send one or two; a client pays for each.
    MAX_INFORMATIONAL = 100


cdef class UpstreamConnection(ClientConnection):
    def __init__(self, Worker worker not None, ConnectionOwner owner not None, ReceiverLimits limits not None):
        self.worker = worker
        self.owner = owner
        self.codec = Http1Codec(ROLE_CLIENT, limits)
        self.wire = wired(UpstreamWire.__new__(UpstreamWire), worker, None)

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.wire.owner = self       # not before: of a connect that fails, nobody is told
        self.wire.attach(transport)
        self.owner.connection_opened(self)

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        self.read(n)
        self.wire.read_by_loop()

    cdef int read(self, Py_ssize_t n) except -1:
        cdef ResponseSink sink = self.sink
        try:
            if self.tunnel:
                return 0 if sink is None else sink.on_upstream_tunnel_data(self.worker.scratch, n)
            if sink is None:
                # Bytes nobody asked for: whatever they are, the connection cannot be trusted with another call.
                return self.close()
            self.response_seen = True
            self.codec.feed(self.worker.scratch, n)
            return self._process()
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("upstream connection failed")
            return self._fail("internal error")

    def eof_received(self):
        cdef ResponseSink sink = self.sink
        try:
            if self.tunnel:
                if sink is not None:
                    sink.on_upstream_eof()
                return self.wire.fd >= 0
            if sink is not None:
                self.codec.feed(NULL, 0)
                self._process()
            else:
                self.close()      # at once, so that no call gets it before the loop reports its end
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
            self._fail("internal error")
        return False

    def connection_lost(self, exc):
        cdef Wire wire = self.wire
        self.lost = True
        exc = exc or wire.read_error
        try:
            if self.sink is not None:
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
        # Armed only while idle: the keep-alive time is over.
        if self.sink is None:
            self.close()

    # -- ClientConnection --------------------------------------------------------------------------------------------
    cdef bint alive(self) noexcept:
        return not self.lost and not self.wire.closing and self.wire.transport is not None

    cdef int capacity(self) noexcept:
        return 1 if self.active == 0 and self.alive() else 0

    cdef ClientStream begin_stream(self, ResponseSink sink):
        cdef UpstreamStream stream = UpstreamStream.__new__(UpstreamStream)
        stream.connection = self
        stream.kept = self.calls > 0
        self.sink = sink
        self.stream = stream
        self.active = 1
        self.calls += 1
        self.response_seen = False
        self.hints = 0
        self.worker.timers.disarm(self.wire)
        return stream

    cdef bint no_pending_input(self) except -1:
        return self.wire.fd < 0 or self.wire.no_pending_input()

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        return self.worker.timers.arm(self.wire, deadline_ns)

    cdef int close(self) except -1:
        if self.tail_len or self.worker.to_upstream.length:
            # A call given up between its bytes and their flush: they must not lead the next call's.
            self.tail_len = 0
            self.worker.to_upstream.clear()
        if not self.lost:
            self.wire.abort_wire()
        return 0

    # -- one call ----------------------------------------------------------------------------------------------------
    cdef int _process(self) except -1:
        # The sink may let go of the call, and with that of its last reference, while it is being called.
        cdef ResponseSink sink = self.sink
        cdef int event
        try:
            while True:
                event = self.codec.next()
                if event == EV_DATA:
                    sink.on_response_data(self.codec.data_ptr, self.codec.data_len)
                elif event == EV_HEAD:
                    sink.on_response_head(self.codec.take_head())
                elif event == EV_END:
                    trailers = self.codec.trailers
                    if self.owner.wanted():
                        # The next call starts now and may write to its client: the bytes of this one leave first.
                        self.sink = None
                        sink.on_response_end(<MessageHead>trailers)
                        self._finish_call()
                    else:
                        self._finish_call()
                        sink.on_response_end(<MessageHead>trailers)
                    return 0
                elif event == EV_INFORMATIONAL:
                    self.hints += 1
                    if self.hints > MAX_INFORMATIONAL:
                        return self._fail("protocol error: too many informational responses")
                    sink.on_informational(self.codec.take_head())
                elif event == EV_UPGRADED:
                    return sink.on_upgraded()
                elif event == EV_CLOSED:
                    return self._fail("connection closed before a response")
                else:
                    break
                if self.sink is None:
                    return 0  # the call was given up from within
        except RemoteProtocolError as error:
            return self._fail_protocol(error)
        if self.sink is not None:
            sink.on_response_flush()
        return 0

    def _fail_protocol(self, error):
        # A response cut short by the peer is a transport failure; a malformed one is the backend's fault.
        return self._fail(f"protocol error: {error}")

    cdef ResponseSink _detach(self):
        cdef ResponseSink sink = self.sink
        if self.stream is not None:
            self.stream.connection = None
            self.stream = None
        self.sink = None
        self.tail_len = 0
        self.active = 0
        return sink

    cdef int _finish_call(self) except -1:
        """Gives the connection back before the sink hears of the end, so that the next call may use it."""
        self._detach()
        if self.codec.reusable() and self.wire.drained() and self.codec.buffered() == 0 and self.alive():
            self.codec.start_next_cycle()
            self.wire.resume_wire()
            self.owner.connection_free(self)
        else:
            self.close()
        return 0

    cdef int _fail(self, str detail) except -1:
        cdef ResponseSink sink = self._detach()
        self.close()
        if sink is not None:
            sink.on_upstream_failed(self.response_seen, detail)
        return 0


cdef class UpstreamWire(Wire):
    cdef int on_bytes(self, Py_ssize_t n) except -1:
        cdef UpstreamConnection connection = <UpstreamConnection>self.owner
        return 0 if connection is None else connection.read(n)


cdef class UpstreamStream(ClientStream):
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        cdef UpstreamConnection connection = self.connection
        cdef int mode = BODY_NONE if size == SIZE_NONE else BODY_LENGTH if size == SIZE_KNOWN else BODY_CHUNKED
        if connection is None:
            return 0
        return connection.codec.send_request(connection.worker.to_upstream, head, mode, length, upgrade)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        if connection.tail_len:
            connection.worker.to_upstream.append(connection.tail, connection.tail_len)
            connection.tail_len = 0
        if connection.codec.send_mode == BODY_CHUNKED or n <= COPY_LIMIT or not connection.worker.owns(p):
            return connection.codec.send_data(connection.worker.to_upstream, p, n)
        # Length framing adds nothing around the bytes: account for them and let the next write borrow them.
        connection.codec.send_borrowed(n)
        connection.tail = p
        connection.tail_len = n
        return 0

    cdef int send_end(self, MessageHead trailers) except -1:
        cdef UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        if connection.tail_len and connection.codec.send_mode == BODY_CHUNKED:
            raise AssertionError("chunked bodies are never borrowed")
        return connection.codec.send_end(connection.worker.to_upstream, trailers)

    cdef int flush(self) except -1:
        cdef UpstreamConnection connection = self.connection
        cdef Py_ssize_t n
        if connection is None:
            return WRITE_FAILED
        n = connection.tail_len
        connection.tail_len = 0
        return connection.wire.write_out(connection.worker.to_upstream, connection.tail, n)

    cdef bint congested(self) noexcept:
        return self.connection is not None and self.connection.wire.queued

    cdef bint reused(self) noexcept:
        return self.kept

    cdef int pause_response(self) except -1:
        return 0 if self.connection is None else self.connection.wire.pause_wire()

    cdef int resume_response(self) except -1:
        return 0 if self.connection is None else self.connection.wire.resume_wire()

    cdef int start_tunnel(self) except -1:
        cdef UpstreamConnection connection = self.connection
        cdef ResponseSink sink
        cdef bytes left
        if connection is None:
            return 0
        sink = connection.sink
        left = connection.codec.leftover()
        connection.tunnel = True
        if left and sink is not None:
            sink.on_upstream_tunnel_data(left, len(left))
        return 0

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        if self.connection is None:
            return WRITE_FAILED
        self.connection.tail = p
        self.connection.tail_len = n
        return self.flush()

    cdef int write_eof(self) except -1:
        cdef UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        if connection.wire.transport is not None and not connection.wire.closing and connection.wire.fd >= 0:
            connection.wire.transport.write_eof()
        else:
            connection.close()
        return 0

    cdef int cancel(self) except -1:
        cdef UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        connection._detach()
        return connection.close()


cdef class Http1Upstream(UpstreamProtocol):
    """HTTP/1.1: one call at a time on each connection."""

    def __init__(self, Worker worker not None, ReceiverLimits limits=None):
        self.name = "http/1.1"
        self.streams = 1
        self.worker = worker
        self.limits = ReceiverLimits() if limits is None else limits

    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        return UpstreamConnection(self.worker, owner, self.limits)
