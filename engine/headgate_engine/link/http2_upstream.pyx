"""HTTP/2 connections to backends; see http2_upstream.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_IS_HEAD, MessageHead
from headgate_engine.http2.kinds cimport E_CANCEL, E_NO_ERROR, E_REFUSED_STREAM
from headgate_engine.http2.limits cimport Http2Limits
from headgate_engine.http2.session cimport H2_DATA, H2_GOAWAY, H2_HEAD, H2_NONE, H2_RESET, H2_SETTINGS, Http2Session, NO_GOAWAY
from headgate_engine.http2.states cimport ST_CLOSED
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.link.contract cimport (
    SIZE_UNKNOWN, WRITE_DONE, WRITE_FAILED, WRITE_QUEUED, ClientConnection, ClientStream, ConnectionOwner, ResponseSink,
    UpstreamProtocol)
from headgate_engine.link.doubt cimport doubtful
from headgate_engine.link.pool cimport Pool
from headgate_engine.link.websocket_key cimport as_switch, drop_key
from headgate_engine.link.wire cimport Wire, wired
from headgate_engine.link.worker cimport Worker

from libc.stdint cimport int64_t

from headgate_engine.http2 import kinds
from headgate_engine.http2.faults import ConnectionFault
from headgate_engine.link.addresses import chosen_protocol

import logging

logger = logging.getLogger("headgate.upstream")

cdef enum:
    BATCH = 65536             # bytes of waiting DATA that are put together for one write
    MAX_INFORMATIONAL = 100   # to one request, as in HTTP/1.1
    # Calls at a time before the peer says how many, and the most in any case.
    EXPECTED_STREAMS = 100
    MOST_STREAMS = 1000

# How long a backend of which nobody said that it speaks HTTP/2 has for its SETTINGS.
cdef int64_t PROOF_NS = 5000000000

# Clients that read slowly hold back a stream's window each: the connection's is that of many.
USUAL = Http2Limits(max_window=1048576, connection_window=16777216, max_list=65536, resets=1000000, oddities=10000)


cdef class Http2UpstreamConnection(ClientConnection):
    def __init__(self, Worker worker not None, ConnectionOwner owner not None, Http2Limits limits not None,
                 int most=MOST_STREAMS):
        self.worker = worker
        self.most = most
        self.owner = owner
        self.session = Http2Session(False, limits)
        self.wire = wired(Http2UpstreamWire.__new__(Http2UpstreamWire), worker, None)
        self.resumed = []
        self.upgrades = []

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.wire.owner = self       # not before: of a connect that fails, nobody is told
        self.wire.attach(transport)
        self.secure = transport.get_extra_info("sslcontext") is not None
        self.session.begin(monotonic_ns())
        if not self.secure and type(self.owner) is Pool and (<Pool>self.owner).plain is not None and not (<Pool>self.owner).closed:
            self.unproven = True
            (<Pool>self.owner).unproven += 1
            self.worker.timers.arm(self.wire, monotonic_ns() + PROOF_NS)
        self.owner.connection_opened(self)
        if self.secure and chosen_protocol(transport) != "h2":
            self._fail("the backend does not offer HTTP/2 (ALPN h2)")
        else:
            self.write()

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        self.read(n)
        self.wire.read_by_loop()

    cdef int read(self, Py_ssize_t n) except -1:
        try:
            if self.wire.closing:
                return 0
            self.session.feed(self.worker.scratch, n, monotonic_ns())
            return self._process()
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("upstream connection failed")
            return self._fail("internal error")

    def eof_received(self):
        self._fail("connection closed")
        return False

    def connection_lost(self, exc):
        cdef Wire wire = self.wire
        exc = exc or wire.read_error
        try:
            self._fail("connection closed" if exc is None else f"connection lost: {exc}")
            self.lost = True
            self.owner.connection_closed(self)
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
        wire.detach()

    def pause_writing(self):
        self.wire.queued = True

    def resume_writing(self):
        self.wire.queued = False
        try:
            self.write()
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
            self._fail("internal error")

    def on_timer(self, now_ns):
        # Armed only while idle: the keep-alive time is over, or the time in which the peer's SETTINGS were to come.
        if self.unproven:
            self._fail("the backend sends no SETTINGS")
        elif self.active == 0:
            self.close()

    # -- ClientConnection --------------------------------------------------------------------------------------------
    cdef bint alive(self) noexcept:
        return not self.lost and not self.wire.closing and self.wire.transport is not None

    cdef int capacity(self) noexcept:
        cdef int64_t most = min(self.session.peer_streams, self.most) if self.settled else min(EXPECTED_STREAMS, self.most)
        if self.unproven or self.doubted or not self.alive() or self.session.goaway_last != NO_GOAWAY or (
                self.session.highest >= NO_GOAWAY - 2):
            return 0
        return <int>max(most - self.active, <int64_t>0)

    cdef ClientStream begin_stream(self, ResponseSink sink):
        cdef Http2ClientStream stream = Http2ClientStream.__new__(Http2ClientStream)
        stream.connection = self
        stream.sink = sink
        stream.kept = self.calls > 0
        stream.record = self.session.open()
        stream.record.owner = stream
        self.active += 1
        self.calls += 1
        self.worker.timers.disarm(self.wire)
        return stream

    cdef bint no_pending_input(self) except -1:
        # With calls in progress something always comes; a GOAWAY says which of them were not processed.
        return self.active > 0 or self.wire.fd < 0 or self.wire.no_pending_input()

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        return self.worker.timers.arm(self.wire, deadline_ns)

    cdef int close(self) except -1:
        return 0 if self.lost else self.wire.abort_wire()

    # -- events ------------------------------------------------------------------------------------------------------
    cdef int _process(self) except -1:
        cdef int event
        self.processing = True
        try:
            while not self.wire.closing:
                event = self.session.next()
                if event == H2_NONE:
                    break
                self._event(event)
            self._deliver()
            self._switch(None)
        except ConnectionFault as error:
            self.processing = False
            self.session.fault(error.code, str(error))
            self.write()
            return self._fail(f"protocol error: {error}")
        finally:
            self.processing = False
        return self.write()

    cdef int _event(self, int event) except -1:
        cdef Http2Session session = self.session
        cdef SessionStream record = session.stream
        cdef Http2ClientStream stream
        cdef Py_ssize_t size
        if event == H2_SETTINGS:
            return self._on_settings()
        if event == H2_GOAWAY:
            return self._on_goaway()
        if event > H2_RESET:
            return 0
        stream = <Http2ClientStream>record.owner
        if event == H2_DATA:
            size = session.size
            if stream is not None:
                self._switch(stream)
                self._hand_on(stream, session.data, size)
            return session.credit(record, size)
        if stream is None:
            return 0
        if event == H2_RESET:
            stream.kept = False           # the connection lives: nothing speaks for another one
            if session.detail is not None:
                stream.seen = True        # it has answered, if only nonsense
                return self.fail_call(stream, False, f"protocol error: {session.detail}")
            return self.fail_call(
                stream, session.code == E_REFUSED_STREAM and not stream.seen,
                f"the backend gave the call up: {kinds.error_name(session.code)}")
        self._switch(stream)
        if stream.connection is None:
            return 0              # it has ended while another one's bytes were sent on
        return self._on_head(stream) if event == H2_HEAD else self._on_end(stream)

    cdef int _hand_on(self, Http2ClientStream stream, const char* p, Py_ssize_t n) except -1:
        cdef ResponseSink sink = stream.sink      # holds whoever makes the call: it may end meanwhile
        if sink is None:
            return 0              # it has ended while another one was told of its bytes
        return sink.on_upstream_tunnel_data(p, n) if stream.tunnel else sink.on_response_data(p, n)

    cdef int _on_head(self, Http2ClientStream stream) except -1:
        cdef MessageHead head = self.session.head
        cdef ResponseSink sink = stream.sink
        stream.seen = True
        self.starved = 0
        if head.status < 200:
            stream.hints += 1
            if stream.hints > MAX_INFORMATIONAL:
                self.session.reset(stream.record, E_CANCEL)
                return self.fail_call(stream, False, "protocol error: too many informational responses")
            return sink.on_informational(head)
        if stream.request is None or head.status >= 300:
            return sink.on_response_head(head)
        as_switch(stream.request, head)
        sink.on_response_head(head)
        return 0 if stream.connection is None else sink.on_upgraded()

    cdef int _on_end(self, Http2ClientStream stream) except -1:
        cdef MessageHead trailers = self.session.trailers
        cdef ResponseSink sink = stream.sink
        if stream.tunnel:
            return sink.on_upstream_eof()
        if stream.record.state != ST_CLOSED:
            self.session.reset(stream.record, E_NO_ERROR)      # the rest of the request is not wanted
        sink = self.detach(stream)
        sink.on_response_end(trailers)
        return self.free()

    cdef int _on_settings(self) except -1:
        cdef Http2ClientStream stream
        self.settled = True
        for stream in self.upgrades:
            if stream.connection is None:
                continue
            if self.session.peer_extended:
                self.session.send_request(stream.record, stream.request, -1, self.secure, True)
            else:
                self.session.reset(stream.record, E_CANCEL)
                self.fail_call(stream, False, "the backend takes no upgrade over HTTP/2")
        self.upgrades = []
        if self.unproven:
            self.unproven = False
            self.worker.timers.disarm(self.wire)
            return (<Pool>self.owner).proven(self)
        return self.free() if self.owner.wanted() else 0

    cdef int _on_goaway(self) except -1:
        """Streams behind the last one that the peer takes were not processed (RFC 9113 section 6.8)."""
        cdef SessionStream record
        for record in list(self.session.streams.values()):
            if record.number > self.session.goaway_last and record.owner is not None:
                self.session.reset(record, E_CANCEL)
                self.fail_call(<Http2ClientStream>record.owner, True, "the backend is leaving")
        return self.close() if self.active == 0 else 0

    cdef int _switch(self, Http2ClientStream to) except -1:
        """What goes to clients may lie in one buffer: that of one leaves before another's comes."""
        cdef Http2ClientStream current = self.current
        cdef ResponseSink sink
        if current is to:
            return 0
        self.current = to
        if current is not None and current.connection is not None:
            sink = current.sink
            if not current.tunnel:
                return sink.on_response_flush()
        return 0

    cdef int _deliver(self) except -1:
        cdef Http2ClientStream stream
        cdef bytes data
        while self.resumed:
            stream = <Http2ClientStream>self.resumed.pop()
            if stream.record.paused or stream.connection is None:
                continue
            self._switch(stream)
            data = self.session.release(stream.record)
            if data:
                self._hand_on(stream, data, len(data))
            if stream.record.held_end and not stream.record.paused and stream.connection is not None:
                stream.record.held_end = False
                self.session.trailers = stream.record.held_trailers
                self._on_end(stream)
        return 0

    # -- output ------------------------------------------------------------------------------------------------------
    cdef int write(self) except -1:
        cdef Http2Session session = self.session
        if self.processing or self.writing or self.wire.closing:
            return 0
        self.writing = True
        try:
            while True:
                session.blocked = self.wire.queued
                session.pump(BATCH)
                if session.drained:
                    self._tell_drained()
                if session.out.length == 0 or self.wire.closing:
                    break
                # A broken write is not the end: what has come may still be read; its end is reported.
                self.wire.write_out(session.out, NULL, 0)
                session.taken()
        finally:
            self.writing = False
        return 0

    cdef int _tell_drained(self) except -1:
        cdef SessionStream record
        cdef Http2ClientStream stream
        cdef ResponseSink sink
        drained, self.session.drained = self.session.drained, []
        for record in drained:
            stream = <Http2ClientStream>record.owner
            sink = None if stream is None else stream.sink
            if sink is not None:
                sink.on_upstream_writable()
        return 0

    cdef int go_on_later(self) except -1:
        if not self.scheduled:
            self.scheduled = True
            self.worker.loop.call_soon(self._go_on)
        return 0

    def _go_on(self):
        self.scheduled = False
        if self.wire.closing or self.processing:
            return
        try:
            self.processing = True
            try:
                self._deliver()
                self._switch(None)
            finally:
                self.processing = False
            self.write()
        except Exception:  # task boundary
            logger.exception("upstream connection failed")
            self._fail("internal error")

    # -- the end -----------------------------------------------------------------------------------------------------
    cdef ResponseSink detach(self, Http2ClientStream stream):
        cdef ResponseSink sink = stream.sink
        cdef SessionStream record = stream.record
        stream.connection = stream.sink = None
        record.owner = None
        record.paused = False
        if record.held is not None:
            self.session.release(record)
        self.active -= 1
        return sink

    cdef int fail_call(self, Http2ClientStream stream, bint unprocessed, str detail) except -1:
        cdef ResponseSink sink = self.detach(stream)
        stream.refused = unprocessed
        sink.on_upstream_failed(stream.seen, detail)
        return self.free()

    cdef int free(self) except -1:
        """A call has ended: the pool may begin another, or let the connection wait."""
        if not self.alive():
            return 0
        if self.doubted or self.session.goaway_last != NO_GOAWAY:
            return self.close() if self.active == 0 else 0
        return self.owner.connection_free(self)

    cdef int _fail(self, str detail) except -1:
        """The connection is over, and with it all calls."""
        cdef SessionStream record
        cdef Http2ClientStream stream
        self.close()
        if self.unproven:
            self.unproven = False
            (<Pool>self.owner).spurn()
        for record in self.session.drop():
            stream = <Http2ClientStream>record.owner
            if stream is not None:
                self.fail_call(stream, False, detail)
        return 0


cdef class Http2UpstreamWire(Wire):
    cdef int on_bytes(self, Py_ssize_t n) except -1:
        cdef Http2UpstreamConnection connection = <Http2UpstreamConnection>self.owner
        return 0 if connection is None else connection.read(n)


cdef class Http2ClientStream(ClientStream):
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        self.record.bodiless = head.flags & HEAD_IS_HEAD != 0
        if upgrade:
            drop_key(head)
            self.request = head
            connection.upgrades.append(self)
            if connection.settled:
                return connection._on_settings()
            return 0
        return connection.session.send_request(
            self.record, head, -1 if size == SIZE_UNKNOWN else length, connection.secure, False)

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        return 0 if connection is None else connection.session.send_data(self.record, p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        # The request of an upgrade has no content; its stream stays open for what follows.
        return 0 if connection is None or self.request is not None else connection.session.send_end(self.record, trailers)

    cdef int flush(self) except -1:
        cdef Http2ClientStream held = self        # the write may tell the request that it goes on, and so end it
        cdef Http2UpstreamConnection connection = held.connection
        if connection is None:
            return WRITE_FAILED
        connection.write()
        if held.connection is None:
            return WRITE_FAILED
        return WRITE_QUEUED if held.record.pending is not None else WRITE_DONE

    cdef bint congested(self) noexcept:
        return self.connection is not None and self.record.pending is not None

    cdef bint reused(self) noexcept:
        return self.kept

    cdef bint unprocessed(self) noexcept:
        return self.refused

    cdef int pause_response(self) except -1:
        self.record.paused = True
        return 0

    cdef int resume_response(self) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        cdef SessionStream record = self.record
        if not record.paused or connection is None:
            return 0
        record.paused = False
        if record.held is not None or record.held_end:
            connection.resumed.append(self)
            return 0 if connection.processing else connection.go_on_later()
        connection.session.credit(record, 0)
        return connection.write()

    cdef int start_tunnel(self) except -1:
        self.tunnel = True
        return self.resume_response()

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.send_body(p, n)
        return self.flush()

    cdef int write_eof(self) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        connection.session.send_end(self.record, None)
        return connection.write()

    cdef int cancel(self) except -1:
        cdef Http2UpstreamConnection connection = self.connection
        if connection is None:
            return 0
        connection.detach(self)
        connection.session.reset(self.record, E_CANCEL)
        if not self.seen and doubtful(connection.session, &connection.starved, monotonic_ns()):
            connection.doubted = True
        connection.write()
        return connection.free()


cdef class Http2Upstream(UpstreamProtocol):
    """HTTP/2: many calls at a time on each connection, at most `streams` (1 to 1,000)."""

    def __init__(self, Worker worker not None, Http2Limits limits=None, int streams=MOST_STREAMS):
        if not 1 <= streams <= MOST_STREAMS:
            raise ValueError("a connection has 1 to 1,000 streams")
        self.name = "h2"
        self.most = streams
        self.streams = min(EXPECTED_STREAMS, streams)
        self.worker = worker
        self.limits = USUAL if limits is None else limits

    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        return Http2UpstreamConnection(self.worker, owner, self.limits, self.most)
