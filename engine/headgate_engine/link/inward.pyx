"""Calls to another port of this process; see inward.pxd."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport (
    HEAD_CHUNKED, HEAD_CLOSE_DELIMITED, HEAD_EXPECT_CONTINUE, MessageHead, new_head)
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.attempt cimport UpstreamAttempt
from headgate_engine.link.backend cimport REPLY, PoolBackend, RoutedRequest
from headgate_engine.link.contract cimport (
    SIZE_NONE, SIZE_UNKNOWN, WRITE_DONE, WRITE_FAILED, WRITE_QUEUED, ClientConnection, ClientStream, ConnectionOwner,
    RequestSink, ResponseSink, ServerStream, UpstreamProtocol)
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.factory cimport ExchangeFactory
from headgate_engine.link.reasons cimport REPLY_TOO_MANY_HOPS
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindSlot

import logging

logger = logging.getLogger("headgate.forward")

# Ports that a request may be handed on to, one behind the other.
MAX_HOPS = 8

cdef enum:
    HOPS = 8
    # Calls that one way carries at a time; there is no bound but that of the requests that make them.
    STREAMS = 1 << 20
    # Bytes of a request body that wait for who answers before the caller is told to stop.
    HELD = 65536

cdef enum Event:
    # For the caller.
    HEAD = 0
    DATA = 1
    END = 2
    HINT = 3
    FLUSH = 4
    UPGRADED = 5
    TUNNEL = 6
    EOF = 7
    FAILED = 8
    # For who answers, beside DATA, END, FLUSH, TUNNEL and EOF.
    WRITABLE = 9
    GONE = 10


cdef MessageHead copied(MessageHead head, int size, int64_t length):
    """A copy of a head that says what is known of its body."""
    cdef MessageHead found = new_head()
    cdef int i
    found.reserve(head.length)
    memcpy(found.data, head.data, head.length)
    found.length, found.parsed = head.length, head.parsed
    found.method_off, found.method_len = head.method_off, head.method_len
    found.target_off, found.target_len, found.path_len = head.target_off, head.target_len, head.path_len
    found.authority_off, found.authority_len = head.authority_off, head.authority_len
    found.reason_off, found.reason_len = head.reason_off, head.reason_len
    found.status, found.minor_version = head.status, head.minor_version
    # Who called gives the client leave to send its body.
    found.flags = head.flags & ~<uint32_t>(HEAD_CHUNKED | HEAD_CLOSE_DELIMITED | HEAD_EXPECT_CONTINUE)
    found.content_length = -1 if size == SIZE_UNKNOWN else length
    if size == SIZE_UNKNOWN:
        found.flags |= HEAD_CHUNKED
    for i in range(head.count):
        found.push_span(head.spans[i])
    return found


cdef class InwardProtocol(UpstreamProtocol):
    """The kind of connection to a port of this process."""

    def __init__(self, Worker worker not None):
        self.worker = worker
        self.name = "internal"
        self.streams = STREAMS

    cdef ClientConnection new_connection(self, ConnectionOwner owner):
        cdef InwardConnection found = InwardConnection.__new__(InwardConnection)
        found.owner = owner
        found.worker = self.worker
        return found


cdef class InwardConnection(ClientConnection):
    def lead_to(self, str key not None):
        """Carry calls from now on: to the port with this key."""
        if self.owner is None:
            raise TypeError("a connection is made by its protocol")
        self.key = key
        self.owner.connection_opened(self)

    cdef int capacity(self) noexcept:
        return 0 if self.closed else STREAMS - self.active

    cdef ClientStream begin_stream(self, ResponseSink sink):
        cdef InwardCall call = InwardCall.__new__(InwardCall)
        call.connection = self
        call.sink = sink
        call.up = []
        call.down = []
        self.active += 1
        return call

    cdef bint no_pending_input(self) except -1:
        return not self.closed

    cdef int keep_until(self, int64_t deadline_ns) except -1:
        return 0                  # nothing is held for it

    cdef int close(self) except -1:
        # From the loop: the pool is in the middle of something.
        if not self.closed:
            self.closed = True
            self.worker.loop.call_soon(self.gone)
        return 0

    def gone(self):
        self.owner.connection_closed(self)

    cdef int left(self) except -1:
        self.active -= 1
        return 0 if self.closed else self.owner.connection_free(self)


cdef class InwardCall(ClientStream):
    # -- what waits ----------------------------------------------------------------------------------------------------
    cdef int later(self) except -1:
        if not self.scheduled:
            self.scheduled = True
            self.connection.worker.loop.call_soon(self.go_on)
        return 0

    def go_on(self):
        """Tell both sides what has waited."""
        self.scheduled = False
        if not self.begun:
            self.begun = True
            if self.sink is not None:
                self.start()
        while self.up and self.calling == 0:
            event, value = self.up.pop(0)
            self.do_caller(event, value)
        self.run_down()

    cdef int run_down(self) except -1:
        cdef bint fed = False
        cdef ResponseSink sink
        while self.down and self.answering == 0 and (not self.request_paused or self.down[0][0] >= EOF):
            event, value = self.down.pop(0)
            fed = fed or event < FLUSH
            self.do_answerer(event, value)
        if fed:
            self.do_answerer(FLUSH, None)
        sink = self.sink
        if self.owed and not self.down and not self.request_paused and sink is not None and self.calling == 0:
            self.owed = False
            sink.on_upstream_writable()
        return 0

    cdef int tell_caller(self, int event, object value) except -1:
        if self.sink is None:
            return 0
        if self.calling == 0 and not self.up:
            return self.do_caller(event, value)
        self.up.append((event, value))
        return self.later()

    cdef int tell_answerer(self, int event, object value) except -1:
        if self.begun and self.answering == 0 and (
                event >= WRITABLE or not self.down and (not self.request_paused or event == EOF)):
            return self.do_answerer(event, value)
        if event >= WRITABLE:
            self.down.insert(0, (event, value))      # whatever is held back for a reader that waits
        else:
            self.down.append((event, value))
        return self.later()

    cdef int do_caller(self, int event, object value) except -1:
        cdef ResponseSink sink = self.sink
        if sink is None:
            return 0
        if event == HEAD:
            self.head_seen = True
            return sink.on_response_head(<MessageHead>value)
        if event == DATA:
            return sink.on_response_data(<bytes>value, len(<bytes>value))
        if event == FLUSH:
            return sink.on_response_flush()
        if event == HINT:
            return sink.on_informational(<MessageHead>value)
        if event == UPGRADED:
            return sink.on_upgraded()
        if event == TUNNEL:
            return sink.on_upstream_tunnel_data(<bytes>value, len(<bytes>value))
        # What follows ends the call.
        self.over()
        if event == END:
            sink.on_response_end(<MessageHead>value)
            return sink.on_response_flush()
        if event == EOF:
            return sink.on_upstream_eof()
        return sink.on_upstream_failed(self.head_seen, <str>value)

    cdef int do_answerer(self, int event, object value) except -1:
        cdef RequestSink request = self.request
        if event == DATA:
            self.held -= len(<bytes>value)
        if request is None:
            return 0
        if event == DATA:
            return request.on_request_data(<bytes>value, len(<bytes>value))
        if event == END:
            return request.on_request_end(<MessageHead>value)
        if event == FLUSH:
            return request.on_request_flush()
        if event == TUNNEL:
            return request.on_client_tunnel_data(<bytes>value, len(<bytes>value))
        if event == EOF:
            return request.on_client_eof()
        if event == WRITABLE:
            return request.on_client_writable()
        self.request = self.answer = None
        return request.on_client_gone()

    cdef int over(self) except -1:
        cdef InwardConnection connection = self.connection
        self.sink = None
        self.up.clear()
        return 0 if connection is None else connection.left()

    cdef int start(self) except -1:
        """Begins the request at the port."""
        cdef InwardConnection connection = self.connection
        cdef Worker worker = connection.worker
        cdef BindSlot slot = worker.slots.get(connection.key)
        cdef RequestCore outer = None
        cdef RoutedRequest inner
        if isinstance(self.sink, UpstreamAttempt):
            outer = (<UpstreamAttempt>self.sink).request
        if slot is None or outer is None:
            # A reload may have closed it.
            return self.do_caller(FAILED, "nobody serves the internal port")
        self.answer = InwardAnswer.__new__(InwardAnswer)
        self.answer.call = self
        inner = <RoutedRequest?>ExchangeFactory(worker).new_request(
            self.answer, outer.ctx.connection, outer.ctx.peer_text, self.head, slot.plan, monotonic_ns())
        inner.ctx.secure = outer.ctx.secure
        inner.ctx.hops = outer.ctx.hops + 1
        self.head = None
        self.request = inner
        return inner.start()

    # -- ClientStream: the caller's calls ------------------------------------------------------------------------------
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        self.head = copied(head, size, -1 if size == SIZE_NONE else length)
        # Not before the caller has sent what it has.
        return self.later()

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef RequestSink request = self.request
        if self.begun and request is None:
            return 0                      # the rest is not wanted
        if self.begun and self.answering == 0 and not self.down and not self.request_paused:
            self.calling += 1
            try:
                return request.on_request_data(p, n)
            finally:
                self.calling -= 1
        self.held += n
        self.down.append((DATA, p[:n]))
        return self.later()

    cdef int send_end(self, MessageHead trailers) except -1:
        return self._told(END, trailers)

    cdef int _told(self, int event, object value) except -1:
        self.calling += 1
        try:
            return self.tell_answerer(event, value)
        finally:
            self.calling -= 1

    cdef int flush(self) except -1:
        if self.begun and not self.down:
            self._told(FLUSH, None)
        if self.request_paused and self.request is not None or self.held > HELD:
            self.owed = True
            return WRITE_QUEUED
        return WRITE_DONE

    cdef bint congested(self) noexcept:
        return self.request_paused and self.request is not None or self.held > HELD

    cdef bint reused(self) noexcept:
        return False

    cdef bint unprocessed(self) noexcept:
        return False

    cdef int pause_response(self) except -1:
        self.answer_paused = True
        return 0

    cdef int resume_response(self) except -1:
        if not self.answer_paused:
            return 0
        self.answer_paused = False
        return self._told(WRITABLE, None)

    cdef int start_tunnel(self) except -1:
        return 0

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self._told(TUNNEL, p[:n])
        if self.request_paused and self.request is not None:
            self.owed = True
            return WRITE_QUEUED
        return WRITE_DONE

    cdef int write_eof(self) except -1:
        return self._told(EOF, None)

    cdef int cancel(self) except -1:
        if self.sink is None:
            return 0
        self.over()
        self.down.clear()
        self.held = 0
        if not self.begun:
            self.begun = True             # nothing has come of it, and nothing will
            return 0
        return self._told(GONE, None)


cdef class InwardAnswer(ServerStream):
    # -- the answerer's calls ------------------------------------------------------------------------------------------
    cdef int _tell(self, int event, object value) except -1:
        cdef InwardCall call = self.call
        call.answering += 1
        try:
            return call.tell_caller(event, value)
        finally:
            call.answering -= 1
            if call.answering == 0 and call.down and not call.scheduled and call.connection is not None:
                call.later()

    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        return self._tell(HEAD, copied(head, size, length))

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef InwardCall call = self.call
        cdef ResponseSink sink = call.sink
        if sink is None:
            return 0
        if call.calling or call.up:
            return self._tell(DATA, p[:n])
        call.answering += 1
        try:
            return sink.on_response_data(p, n)
        finally:
            call.answering -= 1

    cdef int end_response(self, MessageHead trailers) except -1:
        return self._tell(END, trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        if head is None:
            head = new_head()
            head.status = status
        return self._tell(HINT, copied(head, SIZE_NONE, -1))

    cdef int send_continue(self) except -1:
        return 0                          # the caller gives leave

    cdef int flush(self) except -1:
        cdef InwardAnswer held = self        # what is told may end both requests
        if held.call.sink is None:
            return WRITE_DONE
        held._tell(FLUSH, None)
        return WRITE_QUEUED if held.congested() else WRITE_DONE

    cdef bint congested(self) noexcept:
        return self.call.answer_paused and self.call.sink is not None

    cdef bint flush_follows(self) noexcept:
        return len(self.call.down) > 0

    cdef int pause_request(self) except -1:
        self.call.request_paused = True
        return 0

    cdef int resume_request(self) except -1:
        cdef InwardCall call = self.call
        call.request_paused = False
        return call.later() if call.down or call.owed else 0

    cdef int finished(self, bint clean) except -1:
        cdef InwardCall call = self.call
        call.request = call.answer = None
        if call.tunnel:
            return self._tell(EOF, None)
        return self._tell(FAILED, "the answer of the internal port broke off")

    cdef int start_tunnel(self) except -1:
        self.call.tunnel = True
        return self._tell(UPGRADED, None)

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        cdef InwardAnswer held = self
        if held.call.sink is None:
            return WRITE_FAILED
        held._tell(TUNNEL, p[:n])
        return WRITE_QUEUED if held.congested() else WRITE_DONE

    cdef int abort(self) except -1:
        cdef InwardCall call = self.call
        self._tell(FAILED, "the internal port broke off")
        return call.tell_answerer(GONE, None)

    cdef int close_after(self) except -1:
        return 0


cdef class InwardBackend(PoolBackend):
    """Hands requests on to another port of this process."""

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef RequestContext ctx = request.ctx
        if ctx.hops >= HOPS:
            ctx.reply = request.worker.reply(REPLY_TOO_MANY_HOPS)
            return REPLY
        return PoolBackend.dispatch(self, request)


# It keeps nothing of its own: one serves all plans.
INWARD_BACKEND = InwardBackend()
