"""HTTP/2 with clients; see http2_server.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_UPGRADE, MessageHead
from headgate_engine.http2.kinds cimport E_CALM, E_CANCEL, E_INTERNAL, E_NO_ERROR, E_SETTINGS_TIMEOUT, F_DATA
from headgate_engine.http2.session cimport (
    H2_DATA, H2_GOAWAY, H2_HEAD, H2_NONE, H2_PONG, H2_REFUSED, H2_RESET, Http2Session)
from headgate_engine.http2.states cimport CS_DRAINING, CS_OPEN, ST_CLOSED, ST_HALF_REMOTE
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.link.contract cimport WRITE_FAILED, RequestSink
from headgate_engine.link.downstream cimport DownstreamConnection
from headgate_engine.link.http2_stream cimport Http2ServerStream, Http2StreamOwner
from headgate_engine.link.record cimport record_refusal
from headgate_engine.link.websocket_key cimport add_key
from headgate_engine.link.wire cimport Wire
from headgate_engine.plan.plans cimport BindPlan

from libc.stdint cimport int64_t

from headgate_engine.http2.faults import ConnectionFault

import logging

logger = logging.getLogger("headgate.downstream")

cdef enum:
    BATCH = 65536             # bytes of waiting DATA that are put together for one write
    ROUNDS = 16               # writes before others have their turn
    MOST_QUEUED = 1048576     # output beyond it stops reading: a peer that has answers made and reads none

# How long a client has to hear that the connection ends before new streams are refused; less if it answers our PING.
cdef int64_t NOTICE_NS = 1000000000


cdef class Http2Server(Http2StreamOwner):
    """One connection. face: whose socket it is."""

    def __init__(self, DownstreamConnection face not None):
        cdef int64_t now = monotonic_ns()
        self.face = face
        self.session = Http2Session(True, face.plan.http2, True)
        self.resumed = []
        self.session.begin(now)
        self.write()
        self._arm(now)

    # -- Takeover ------------------------------------------------------------------------------------------------------
    cdef int read(self, Py_ssize_t n) except -1:
        cdef int64_t now = monotonic_ns()
        if self.over:
            return 0
        self.face.last_read_ns = now
        self.session.feed(self.face.worker.scratch, n, now)
        return self._process()

    cdef bint ended(self) except -1:
        self.lost()
        return False

    cdef int lost(self) except -1:
        cdef SessionStream record
        cdef Http2ServerStream stream
        cdef RequestSink sink
        self.over = True
        self.current = None
        for record in self.session.drop():
            stream = <Http2ServerStream>record.owner
            record.owner = None
            if stream is not None:
                sink, stream.sink, stream.connection = stream.sink, None, None
                if sink is not None:
                    sink.on_client_gone()
        self.resumed = []
        return 0

    cdef int writable(self) except -1:
        self.face.wire.resume_wire()
        return self.write()

    cdef bint idle(self) noexcept:
        return len(self.session.streams) == 0

    cdef bint leave(self, int64_t before_ns) except -1:
        if self.over:
            return False
        if self.leave_ns == 0:
            self._begin_leaving()
        return self.over

    cdef int abort(self) except -1:
        self.lost()
        return self.face.wire.abort_wire()

    # -- time ----------------------------------------------------------------------------------------------------------
    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef Http2Session session = self.session
        cdef BindPlan plan = self.face.plan
        cdef int64_t idle_ns = max(self.face.last_read_ns, self.face.idle_since_ns)
        session.now_ns = now_ns
        if not session.acknowledged and now_ns - session.began_ns >= session.limits.settings_timeout_ns:
            return self._fail(E_SETTINGS_TIMEOUT, "SETTINGS were not acknowledged")
        if self.partial_ns and now_ns - self.partial_ns >= plan.head_timeout_ns:
            return self._fail(E_CALM, "request head timeout")
        if self.leave_ns and now_ns >= self.leave_ns:
            session.goaway(E_NO_ERROR, "")
        if self.idle() and (session.state == CS_DRAINING or now_ns - idle_ns >= plan.idle_timeout_ns):
            if self.face.wire.no_pending_input():
                session.goaway(E_NO_ERROR, "")
                return self._close()
        if session.limits.ping_interval_ns:
            if session.pinged_ns and now_ns - session.pinged_ns >= session.limits.ping_timeout_ns:
                return self._fail(E_NO_ERROR, "the client does not answer")
            if now_ns - self.face.last_read_ns >= session.limits.ping_interval_ns:
                session.ping()
        self._check_streams(now_ns)
        if self.over:
            return 0
        self.write()
        return 0 if self.over else self._arm(now_ns)

    cdef int _arm(self, int64_t now) except -1:
        """Look again when something may be due; streams are looked at when their time-out may have passed."""
        cdef BindPlan plan = self.face.plan
        cdef Http2Session session = self.session
        cdef int64_t due
        if self.face.wire.queued:
            return 0              # its own time runs
        if len(session.streams):
            due = now + plan.body_timeout_ns
        else:
            due = max(self.face.last_read_ns, self.face.idle_since_ns) + plan.idle_timeout_ns
            if due <= now:
                due = now + plan.head_timeout_ns      # its bytes are about to be read
        if not session.acknowledged:
            due = min(due, session.began_ns + session.limits.settings_timeout_ns)
        if self.partial_ns:
            due = min(due, self.partial_ns + plan.head_timeout_ns)
        if self.rest_due_ns:
            due = min(due, self.rest_due_ns)
        if self.leave_ns > now:
            due = min(due, self.leave_ns)
        if session.limits.ping_interval_ns:
            due = min(due, session.pinged_ns + session.limits.ping_timeout_ns if session.pinged_ns else
                      max(now, self.face.last_read_ns) + session.limits.ping_interval_ns)
        return self.face.worker.timers.arm(self.face.wire, due)

    cdef int64_t _check_streams(self, int64_t now) except -1:
        """Give up streams whose client neither sends what it owes nor takes what waits for it."""
        cdef SessionStream record
        cdef Http2ServerStream stream
        cdef RequestSink sink
        cdef int64_t limit = self.face.plan.body_timeout_ns
        self.rest_due_ns = 0
        for record in list(self.session.streams.values()):
            stream = <Http2ServerStream>record.owner
            if stream is None or record.state == ST_CLOSED or stream.tunnel and stream.sink is not None:
                continue
            if record.waiting() and now - record.sent_ns >= limit:
                stream.give_up(E_CANCEL)
            elif stream.unread:
                if stream.rest_is_late(now, limit):
                    stream.give_up(E_NO_ERROR)
                elif not self.over:
                    self.expect_rest(now)
            elif record.state < ST_HALF_REMOTE and stream.sink is not None and not record.paused \
                    and now - record.received_ns >= limit:
                sink, stream.sink = stream.sink, None
                sink.on_request_refused(0 if stream.started else 408, "request body timeout")
                if stream.started:
                    self.session.reset(record, E_CANCEL)
                else:
                    self.session.refuse(record, 408, "request body timeout", E_NO_ERROR)
                    # It has a line of its own.
                    record_refusal(self.face.worker, self.face.plan, self.face.named, None, 408, "request body timeout")
        return 0

    # -- events --------------------------------------------------------------------------------------------------------
    cdef int _process(self) except -1:
        cdef Http2Session session = self.session
        cdef int event
        if self.processing:
            return 0
        self.processing = True
        try:
            while not self.over:
                event = session.next()
                if event == H2_NONE:
                    break
                try:
                    self._event(event)
                except ConnectionFault:
                    raise
                except Exception:  # task boundary: a fault of one request must not end the others of its connection
                    logger.exception("request failed")
                    if session.stream.owner is not None:
                        (<Http2ServerStream>session.stream.owner).give_up(E_INTERNAL)
            self._deliver()
            self._switch(None)
        except ConnectionFault as error:
            self.processing = False
            return self._fail(error.code, str(error))
        finally:
            self.processing = False
        return self._end_events()

    cdef int _event(self, int event) except -1:
        cdef Http2Session session = self.session
        cdef SessionStream record = session.stream
        cdef Http2ServerStream stream
        cdef RequestSink sink
        cdef Py_ssize_t size
        if event == H2_HEAD:
            return self._begin_request()
        if event == H2_PONG:
            return session.goaway(E_NO_ERROR, "") if self.leave_ns else 0
        if event == H2_REFUSED:
            return self._refused()
        if event == H2_GOAWAY:
            return self._begin_leaving()
        if event > H2_RESET:
            return 0
        stream = <Http2ServerStream>record.owner
        sink = None if stream is None else stream.sink
        if event == H2_RESET:
            record.owner = None
            if stream is not None:
                stream.connection, stream.sink = None, None
            if sink is not None:
                if session.detail is not None:
                    sink.on_request_refused(0 if stream.started else 400, session.detail)
                else:
                    sink.on_client_gone()
            return self.stream_over()
        if event == H2_DATA:
            size = session.size
            if sink is not None:
                self._switch(stream)
                if stream.tunnel:
                    sink.on_client_tunnel_data(session.data, size)
                else:
                    sink.on_request_data(session.data, size)
            elif stream is not None and stream.unread:
                stream.dropped(size)
            return session.credit(record, size)
        if sink is not None:
            self._switch(stream)
            if stream.tunnel:
                return sink.on_client_eof()
            sink.on_request_end(session.trailers)
        elif stream is not None and record.pending is None:
            stream.give_up(E_NO_ERROR)             # else the answer is not out yet: _tell_drained() goes on
        return 0

    cdef int _begin_request(self) except -1:
        cdef DownstreamConnection face = self.face
        cdef MessageHead head = self.session.head
        cdef BindPlan plan = face.slot.plan
        cdef Http2ServerStream stream = Http2ServerStream.__new__(Http2ServerStream)
        cdef RequestSink sink
        face.plan = plan
        stream.connection = self
        stream.record = self.session.stream
        stream.record.owner = stream
        stream.left = -1
        stream.expects_continue = head.flags & HEAD_EXPECT_CONTINUE != 0
        face.requests += 1
        if plan.max_requests and face.requests >= plan.max_requests or (
                plan.max_duration_ns and face.last_read_ns - face.accepted_ns >= plan.max_duration_ns):
            self._begin_leaving()
        add_key(head)
        self._switch(stream)
        sink = stream.sink = face.requests_of.new_request(stream, face, face.peer_text, head, plan, face.last_read_ns)
        if not head.flags & (HEAD_UPGRADE | HEAD_CONNECT):
            return sink.start()
        # What comes from now on is for the tunnel.
        stream.upgrade = stream.record.paused = True
        sink.start()
        sink = stream.sink
        return 0 if sink is None else sink.on_request_end(None)

    cdef int _switch(self, Http2ServerStream to) except -1:
        """All requests of a connection share one buffer for upstream data: one request's data is sent before another's is added."""
        cdef Http2ServerStream current = self.current
        cdef RequestSink sink
        if current is to:
            return 0
        self.current = to
        if current is not None:
            sink = current.sink
            if sink is not None:
                return sink.on_request_flush()
        return 0

    cdef int _refused(self) except -1:
        cdef DownstreamConnection face = self.face
        return record_refusal(
            face.worker, face.slot.plan, face.named, face.peer, self.session.status, self.session.detail)

    cdef int _fail(self, int code, str detail) except -1:
        """What the client did ends the connection: requests in progress with it."""
        cdef DownstreamConnection face = self.face
        if self.over:
            return 0
        logger.debug("HTTP/2 connection ended", extra={"src.addr": face.peer, "error": detail})
        self.session.fault(code, detail)
        return self._close()

    cdef int _end_events(self) except -1:
        cdef int64_t now = self.face.last_read_ns
        if self.over:
            return 0
        if self.session.reader.expecting or self.session.reader.in_payload and self.session.reader.kind != F_DATA:
            self.partial_ns = self.partial_ns or now
        else:
            self.partial_ns = 0
        self.write()
        return 0 if self.over else self._arm(now)

    cdef int _deliver(self) except -1:
        """Hand out what was held back for readers that go on."""
        cdef Http2ServerStream stream
        cdef SessionStream record
        cdef RequestSink sink
        cdef bytes data
        while self.resumed and not self.over:
            stream = <Http2ServerStream>self.resumed.pop()
            record, sink = stream.record, stream.sink
            if record.paused or sink is None:
                continue
            self._switch(stream)
            data = self.session.release(record)
            if data:
                if stream.tunnel:
                    sink.on_client_tunnel_data(data, len(data))
                else:
                    sink.on_request_data(data, len(data))
            if record.held_end and not record.paused and stream.sink is not None:
                record.held_end = False
                if stream.tunnel:
                    sink.on_client_eof()
                else:
                    sink.on_request_end(record.held_trailers)
        return 0

    # -- output --------------------------------------------------------------------------------------------------------
    cdef int write(self) except -1:
        if self.processing or self.writing or self.over:
            return 0
        self._write()
        if self.session.state == CS_DRAINING and not self.over and self.idle():
            return self._close()
        return 0

    cdef int _write(self) except -1:
        cdef Http2Session session = self.session
        cdef Wire wire = self.face.wire
        cdef int rounds = 0
        cdef int result
        self.writing = True
        try:
            while True:
                session.blocked = wire.queued
                if session.first is not None:
                    session.now_ns = monotonic_ns()
                    session.pump(BATCH)
                if session.drained:
                    self._tell_drained()
                    if self.over:
                        return 0
                if session.out.length == 0:
                    break
                result = wire.write_out(session.out, NULL, 0)
                session.taken()
                if result == WRITE_FAILED:
                    return wire.abort_wire()
                rounds += 1
                if wire.queued:
                    if wire.transport.get_write_buffer_size() > MOST_QUEUED:
                        wire.pause_wire()
                    self.face.watch_output()
                elif rounds >= ROUNDS and session.first is not None:
                    return self.go_on_later()
        finally:
            self.writing = False
        return 0

    cdef int _tell_drained(self) except -1:
        cdef SessionStream record
        cdef Http2ServerStream stream
        cdef RequestSink sink
        cdef list drained = self.session.drained
        self.session.drained = []
        for record in drained:
            stream = <Http2ServerStream>record.owner
            if stream is None:
                continue
            sink = stream.sink
            if sink is not None:
                sink.on_client_writable()
            else:
                stream.answered()
        return self.stream_over()

    cdef int go_on_later(self) except -1:
        if not self.scheduled:
            self.scheduled = True
            self.face.worker.loop.call_soon(self._go_on)
        return 0

    def _go_on(self):
        self.scheduled = False
        if self.over:
            return
        try:
            self._process_held()
        except Exception:  # task boundary
            logger.exception("client connection failed")
            self.abort()

    def _process_held(self):
        if not self.processing:
            self.processing = True
            try:
                self._deliver()
                self._switch(None)
            finally:
                self.processing = False
        self.write()

    cdef int stream_over(self) except -1:
        if self.idle():
            self.face.idle_since_ns = monotonic_ns()
        return 0

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int _begin_leaving(self) except -1:
        """New requests go elsewhere: said twice, so that those on their way are still taken (RFC 9113 section 6.8).

        An idle connection is told once, with the last stream that was taken, and ends, as nginx does it: a request that
        meets this counts as not processed and is sent again. Clients on the h2 package, such as httpx, know how to do that;
        whatever comes after a GOAWAY, such as the PING that a second one waits for, is an error to them.
        """
        cdef int64_t now = monotonic_ns()
        if self.leave_ns or self.over:
            return 0
        if self.idle() and self.partial_ns == 0 and self.session.state == CS_OPEN and self.face.wire.no_pending_input():
            self.session.now_ns = self.leave_ns = now
            self.session.goaway(E_NO_ERROR, "")
            return self._close()
        self.session.now_ns = now
        self.leave_ns = now + NOTICE_NS
        if self.session.state != CS_OPEN:
            self.session.goaway(E_NO_ERROR, "")       # the client has sent nothing yet
        self.session.notice()
        self.write()
        return 0 if self.over else self._arm(now)

    cdef int _close(self) except -1:
        """Write what there is, and close."""
        cdef DownstreamConnection face = self.face
        if self.over:
            return 0
        self._write()
        self.lost()
        face.tunnel = False
        face.other = None
        return 0 if face.lost or face.wire.closing else face.linger()
