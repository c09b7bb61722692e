"""Requests of a connection of HTTP/2 with a client; see http2_stream.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.http2.kinds cimport E_CANCEL, E_INTERNAL, E_NO_ERROR
from headgate_engine.http2.states cimport ST_CLOSED, ST_HALF_LOCAL
from headgate_engine.http2.stream cimport SessionStream
from headgate_engine.link.contract cimport (
    SIZE_KNOWN, SIZE_NONE, WRITE_DONE, WRITE_FAILED, WRITE_QUEUED, RequestSink, ServerStream)
from headgate_engine.link.takeover cimport Takeover
from headgate_engine.link.websocket_key cimport drop_accept

from libc.stdint cimport int64_t

cdef enum:
    # Bytes of a request that may come behind its answer, and are dropped. Many clients read no answer before they have sent the
    # body (httpx, curl up to 8), and take a reset with NO_ERROR (RFC 9113 section 8.1) for a failure.
    MOST_UNREAD = 16777216

# A client that sends nothing of it for so long has stopped, and may wait for the end of the stream (curl does).
cdef int64_t REST_PAUSE_NS = 2000000000


cdef class Http2StreamOwner(Takeover):
    cdef int write(self) except -1:
        raise NotImplementedError("Http2StreamOwner.write")

    cdef int stream_over(self) except -1:
        raise NotImplementedError("Http2StreamOwner.stream_over")

    cdef int go_on_later(self) except -1:
        raise NotImplementedError("Http2StreamOwner.go_on_later")

    cdef int expect_rest(self, int64_t now_ns) except -1:
        if self.rest_due_ns == 0:
            self.rest_due_ns = now_ns + REST_PAUSE_NS
            if not self.processing and not self.face.wire.queued:      # else the timer is armed behind it
                return self.face.worker.timers.arm(self.face.wire, self.rest_due_ns)
        return 0


cdef class Http2ServerStream(ServerStream):
    # -- the response --------------------------------------------------------------------------------------------------
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        cdef Http2StreamOwner connection = self.connection
        if connection is None:
            return 0
        self.started = True
        # A tunnel has what comes behind the head.
        self.bodiless = size == SIZE_NONE and head.status != 101 and not (self.upgrade and head.status == 200)
        self.left = length if size == SIZE_KNOWN else -1
        if head.status != 101:
            return connection.session.send_response(self.record, head, length if size == SIZE_KNOWN or size == SIZE_NONE else -1)
        # An extended CONNECT that has succeeded (RFC 8441 section 5).
        drop_accept(head)
        head.status = 200
        try:
            return connection.session.send_response(self.record, head, -1)
        finally:
            head.status = 101

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef Http2StreamOwner connection = self.connection
        cdef SessionStream record = self.record
        cdef bint waited
        if connection is None or self.bodiless:
            return 0
        if self.left >= 0:
            n = min(n, self.left)
            self.left -= n
        waited = record.pending is not None
        connection.session.send_data(record, p, n)
        if not waited and record.pending is not None:
            record.sent_ns = monotonic_ns()
        return 0

    cdef int end_response(self, MessageHead trailers) except -1:
        cdef Http2StreamOwner connection = self.connection
        if connection is None:
            return 0
        if self.left > 0:
            return connection.session.reset(self.record, E_INTERNAL)      # the rest is missing
        return connection.session.send_end(self.record, trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        cdef Http2StreamOwner connection = self.connection
        if connection is None or self.started:
            return 0
        if head is None:
            head = new_head()
            head.status = status
        return connection.session.send_response(self.record, head, -1)

    cdef int send_continue(self) except -1:
        if not self.expects_continue:
            return 0
        self.expects_continue = False
        self.send_informational(100, None)
        return self.flush()

    cdef int flush(self) except -1:
        cdef Http2ServerStream held = self        # the write may tell the request that it goes on, and so end it
        cdef Http2StreamOwner connection = held.connection
        if connection is None or connection.face.wire.closing:
            return WRITE_FAILED
        connection.write()
        if held.connection is None:
            return WRITE_FAILED
        return WRITE_QUEUED if held.record.pending is not None else WRITE_DONE

    cdef bint congested(self) noexcept:
        return self.connection is not None and self.record.pending is not None

    # -- the request ---------------------------------------------------------------------------------------------------
    cdef bint flush_follows(self) noexcept:
        cdef Http2StreamOwner connection = self.connection
        return connection is not None and connection.processing and connection.current is self

    cdef int pause_request(self) except -1:
        self.record.paused = True
        return 0

    cdef int resume_request(self) except -1:
        cdef Http2StreamOwner connection = self.connection
        cdef SessionStream record = self.record
        if not record.paused or connection is None or self.upgrade and not self.tunnel:
            return 0
        record.paused = False
        record.received_ns = max(record.received_ns, connection.session.now_ns)
        if record.held is None and not record.held_end:
            connection.session.credit(record, 0)
            return 0
        connection.resumed.append(self)
        return 0 if connection.processing else connection.go_on_later()

    # -- the end -------------------------------------------------------------------------------------------------------
    cdef int finished(self, bint clean) except -1:
        cdef Http2StreamOwner connection = self.connection
        self.sink = None
        if connection is None:
            return 0
        if not clean:
            return self.give_up(E_INTERNAL)
        if self.tunnel:
            connection.session.send_end(self.record, None)
        return self.answered() if self.record.pending is None else 0         # _tell_drained() goes on

    cdef int answered(self) except -1:
        cdef Http2StreamOwner connection = self.connection
        cdef SessionStream record = self.record
        if record.state != ST_HALF_LOCAL or self.tunnel or self.expects_continue or record.held_end:
            return self.give_up(E_NO_ERROR)       # there is no rest, or nobody has begun to send it
        self.unread = MOST_UNREAD
        record.sent_ns = record.received_ns = monotonic_ns()
        record.paused = False
        if record.held is not None:
            connection.session.release(record)
        else:
            connection.session.credit(record, 0)
        connection.expect_rest(record.sent_ns)
        return connection.write()

    cdef bint rest_is_late(self, int64_t now_ns, int64_t limit_ns) noexcept:
        return now_ns - self.record.received_ns >= REST_PAUSE_NS or now_ns - self.record.sent_ns >= limit_ns

    cdef int dropped(self, Py_ssize_t n) except -1:
        self.unread -= n
        return 0 if self.unread > 0 else self.give_up(E_NO_ERROR)

    cdef int give_up(self, int code) except -1:
        """The request is over, and with it the stream: nothing more of it is sent or read."""
        cdef Http2StreamOwner connection = self.connection
        cdef RequestSink sink = self.sink
        cdef SessionStream record = self.record
        if connection is None:
            return 0
        self.connection, self.sink, record.owner = None, None, None
        if record.held is not None:
            record.paused = False
            connection.session.release(record)
        if sink is not None:
            sink.on_client_gone()
        if record.state == ST_HALF_LOCAL or record.state != ST_CLOSED and code:
            connection.session.reset(record, code)
        elif record.state != ST_CLOSED:
            connection.session.reset(record, E_INTERNAL)
        connection.stream_over()
        if not connection.over:
            connection.write()
        return 0

    cdef int abort(self) except -1:
        return self.give_up(E_CANCEL)

    cdef int close_after(self) except -1:
        return 0                  # other streams of the connection go on

    # -- tunnels -------------------------------------------------------------------------------------------------------
    cdef int start_tunnel(self) except -1:
        self.tunnel = True
        return self.resume_request()

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.send_body(p, n)
        return self.flush()
