"""Client HTTP/1.1 connections; see downstream.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_EXPECT_CONTINUE, HEAD_KEEPS_CASE, MessageHead
from headgate_engine.http1.codec cimport Http1Codec, write_refusal
from headgate_engine.http1.kinds cimport (
    BODY_CHUNKED, BODY_LENGTH, BODY_NONE, BODY_UNTIL_CLOSE, EV_CLOSED, EV_DATA, EV_END, EV_HEAD, EV_PAUSED, ROLE_SERVER)
from headgate_engine.link.admission cimport admitted, waits
from headgate_engine.link.contract cimport SIZE_KNOWN, SIZE_UNKNOWN, WRITE_FAILED, RequestFactory, RequestSink
from headgate_engine.link.face cimport ClientFace
from headgate_engine.link.record cimport record_refusal
from headgate_engine.link.wire cimport Wire, wired
from headgate_engine.link.worker cimport Worker
from headgate_engine.plan.plans cimport BindPlan, BindSlot

from libc.string cimport memcpy

from headgate_engine.errors import RemoteProtocolError
from headgate_engine.http2 import frames
from headgate_engine.link.addresses import chosen_protocol

import logging

logger = logging.getLogger("headgate.downstream")

cdef enum:
    COPY_LIMIT = 2048
    PREFACE_LENGTH = 24
    # An unread request body up to this size is read and dropped to keep the connection; a longer one closes it.
    DRAIN_LIMIT = 65536

# How long the rest of a request is thrown away after the answer, so that a reset does not overtake it.
cdef int64_t LINGER_NS = 2000000000


cdef class DownstreamConnection(ClientFace):
    def __init__(self, Worker worker not None, BindSlot slot not None, RequestFactory requests not None):
        self.worker = worker
        self.slot = slot
        self.requests_of = requests
        self.plan = slot.plan
        self.codec = Http1Codec(ROLE_SERVER, slot.plan.limits)
        self.wire = wired(DownstreamWire.__new__(DownstreamWire), worker, self)

    # -- asyncio.BufferedProtocol ------------------------------------------------------------------------------------
    def connection_made(self, transport):
        self.wire.attach(transport)
        self.take_addresses(transport)
        self.accepted_ns = monotonic_ns()
        self.last_read_ns = self.accepted_ns
        if not self.worker.connection_made(self) or not admitted(self):
            self.wire.abort_wire()
            return
        self.worker.timers.arm(self.wire, self.accepted_ns + self.plan.idle_timeout_ns)
        if not waits(self) and self.plan.secure and chosen_protocol(transport) == "h2":
            self.take_over()

    def get_buffer(self, sizehint):
        return self.worker.scratch_view

    def buffer_updated(self, Py_ssize_t n):
        self.read(n)
        self.wire.read_by_loop()

    cdef int read(self, Py_ssize_t n) except -1:
        cdef RequestSink sink = self.sink
        try:
            self.last_read_ns = monotonic_ns()
            if self.tunnel:
                return self._read_other(n) if sink is None else sink.on_client_tunnel_data(self.worker.scratch, n)
            if self.lingering or self.wire.closing or self.requests == 0 and self._sniff(n):
                return 0
            self.codec.feed(self.worker.scratch, n)
            return self._process()
        except Exception:  # task boundary: a fault here ends this connection, never the loop
            logger.exception("client connection failed")
            return self._refuse(500, "internal error")

    # -- another protocol --------------------------------------------------------------------------------------------
    cdef int _read_other(self, Py_ssize_t n) except -1:
        cdef Takeover other = self.other
        return 0 if other is None or n == 0 else other.read(n)

    cdef bint _sniff(self, Py_ssize_t n) except -1:
        """Look at how a connection begins. False: with HTTP/1.1; True: not, or not clearly, and what came is used up."""
        cdef bytes start
        if self.sniffed is None and (self.worker.scratch[0] != c'P' or self.codec.buffered()):
            return False
        start = (self.sniffed or b"") + self.worker.scratch[:n]
        if not frames.PREFACE.startswith(start[:PREFACE_LENGTH]):
            if self.sniffed is None:
                return False
            self.sniffed = None
            self.codec.feed(start, len(start))
            self._process()
            return True
        self.sniffed = start
        if len(start) >= PREFACE_LENGTH:
            self.take_over()
        return True

    cdef int take_over(self) except -1:
        """The connection continues with HTTP/2."""
        from headgate_engine.link.http2_server import Http2Server  # which uses this module
        self.tunnel = True
        self.other = Http2Server(self)
        start, self.sniffed = self.sniffed or b"", None
        for part in (start[:PREFACE_LENGTH], start[PREFACE_LENGTH:]):
            memcpy(self.worker.scratch, <const char*>part, len(part))
            self._read_other(len(part))
        return 0

    def eof_received(self):
        cdef RequestSink sink = self.sink
        cdef Takeover other = self.other
        try:
            self.client_eof = True
            if other is not None:
                return other.ended()
            if self.tunnel:
                if sink is not None:
                    sink.on_client_eof()
                return self.wire.tls is None and not self.wire.closing
            if self.lingering or sink is None and self.codec.buffered() == 0:
                return False
            if sink is not None and self.request_done:
                # The client is done sending and still reads: the answer goes out first.
                sink.on_client_eof()
                return self.wire.tls is None and not self.wire.closing and self.sink is not None
            self.codec.feed(NULL, 0)
            self._process()
        except Exception:  # task boundary
            logger.exception("client connection failed")
            self.abort()
        # A refusal just written must still leave: only a connection with nothing to send is closed here.
        return self.lingering or self.wire.queued or self.sink is not None

    def connection_lost(self, exc):
        cdef RequestSink sink = self.sink
        cdef Takeover other = self.other
        self.lost = True
        self.sink = self.other = None
        try:
            if sink is not None:
                sink.on_client_gone()
            if other is not None:
                other.lost()
            self.gone()
        except Exception:  # task boundary
            logger.exception("client connection failed")
        self.wire.detach()
        self.transport = None

    def pause_writing(self):
        self.wire.queued = True

    def resume_writing(self):
        cdef RequestSink sink = self.sink
        cdef Takeover other = self.other
        self.wire.queued = False
        try:
            if sink is not None:
                sink.on_client_writable()
            elif self.lingering:
                self.worker.timers.arm(self.wire, monotonic_ns() + LINGER_NS)
            elif other is not None:
                other.writable()
            elif not self.wire.closing and not self.tunnel:
                self.wire.resume_wire()       # the next request waited for the answers before it to leave
                self._process()
        except Exception:  # task boundary
            logger.exception("client connection failed")
            self.abort()

    def on_timer(self, now_ns):
        cdef int64_t due, now = now_ns
        cdef BindPlan plan = self.plan
        cdef Takeover other = self.other
        if self.wire.queued:
            self.write_stalled(now)
            return
        if self.lingering or self.wire.closing:
            self.wire.abort_wire()
            return
        if other is not None:
            other.on_timer(now)             # sets its own time, also where it closes the connection
        if other is not None or self.tunnel:
            return
        if self.sink is not None:
            if self.request_done or self.wire.reading_paused:
                # Waiting for the backend: its own deadlines apply.
                self.worker.timers.arm(self.wire, now + plan.body_timeout_ns)
                return
            due = self.last_read_ns + plan.body_timeout_ns
            if due <= now:
                self._refuse(408, "request body timeout")
                return
        elif self.head_started_ns:
            due = self.head_started_ns + min(plan.head_timeout_ns, plan.idle_timeout_ns)
            if due <= now:
                self._refuse(408, "request head timeout")
                return
        else:
            due = max(self.last_read_ns, self.idle_since_ns) + plan.idle_timeout_ns
            if due <= now:
                if self.wire.no_pending_input():
                    self.wire.close_wire()
                    return
                due = now + plan.head_timeout_ns      # its bytes are about to be read
        self.worker.timers.arm(self.wire, due)

    # -- events of the codec -----------------------------------------------------------------------------------------
    cdef int _process(self) except -1:
        cdef RequestSink sink            # holds the exchange while it is called: it may end meanwhile
        cdef int event
        if self.processing:
            return 0
        self.processing = True
        try:
            while True:
                event = self.codec.next()
                if event == EV_HEAD:
                    self._begin_request()
                elif event == EV_DATA:
                    sink = self.sink
                    if sink is not None:
                        sink.on_request_data(self.codec.data_ptr, self.codec.data_len)
                elif event == EV_END:
                    self.request_done = True
                    sink = self.sink
                    if sink is not None:
                        sink.on_request_end(self.codec.trailers)
                elif event == EV_PAUSED:
                    if self.sink is not None or self.wire.closing or self.lingering:
                        break
                    if self.wire.queued:
                        # A client that sends on and does not read would have its answers pile up in memory.
                        self.wire.pause_wire()
                        break
                    self.codec.start_next_cycle()
                    self.request_done = False
                else:
                    if event == EV_CLOSED and self.sink is None:
                        self.wire.close_wire()
                    break
                if self.lost or self.wire.closing or self.lingering:
                    break
        except RemoteProtocolError as error:
            self._refuse(error.status, str(error))
        finally:
            self.processing = False
        return self._end_events()

    cdef int _end_events(self) except -1:
        """Called when all bytes of a read are processed: sends the output and sets the deadline of the new state."""
        cdef RequestSink sink = self.sink
        if sink is not None:
            sink.on_request_flush()
        if self.lost or self.wire.closing or self.lingering:
            return 0
        if self.sink is not None:
            if self.request_done:
                if self.codec.buffered() > 0:
                    self.wire.pause_wire()      # pipelined requests wait in the socket, not in memory
            else:
                self.worker.timers.arm(self.wire, self.last_read_ns + self.plan.body_timeout_ns)
        elif self.codec.buffered() > 0:
            if self.head_started_ns == 0 and not self.wire.queued:
                self.head_started_ns = max(self.last_read_ns, self.idle_since_ns)
                self.worker.timers.arm(
                    self.wire, self.head_started_ns + min(self.plan.head_timeout_ns, self.plan.idle_timeout_ns))
        elif not self.wire.queued:
            self.worker.timers.arm(self.wire, max(self.last_read_ns, self.idle_since_ns) + self.plan.idle_timeout_ns)
        return 0

    cdef int _begin_request(self) except -1:
        cdef MessageHead head = self.codec.take_head()
        cdef RequestSink sink
        self.plan = self.slot.plan
        self.requests += 1
        self.request_done = False
        self.expects_continue = head.flags & HEAD_EXPECT_CONTINUE != 0
        self.head_started_ns = 0
        # A pipelined request begins when the one before it is answered: its time-outs do not run while it waits.
        sink = self.sink = self.requests_of.new_request(
            self, self, self.peer_text, head, self.plan, max(self.last_read_ns, self.idle_since_ns))
        return sink.start()

    cdef int _refuse(self, int status, str detail) except -1:
        """Answers a malformed or overdue request and closes the connection: nothing more of it reaches a backend."""
        cdef RequestSink sink = self.sink
        cdef bint started = self.codec.response_started()
        self.sink = None
        if sink is not None:
            sink.on_request_refused(0 if started or self.lost else status, detail)     # its answer may leave yet
        self.tail_len = 0
        self.worker.to_client.clear()
        if started or self.lost:
            return 0 if self.lingering else self.abort()
        write_refusal(self.worker.to_client, status, detail.encode("utf-8", "replace"))
        # One that has begun has a line of its own.
        record_refusal(self.worker, self.plan, self.named, self.peer if sink is None else None, status, detail)
        if self.wire.write_out(self.worker.to_client, NULL, 0) == WRITE_FAILED:
            return self.abort()
        return self.linger()

    cdef int linger(self) except -1:
        """Half-closes and reads on for a while: to close with unread input would reset it and lose the answer."""
        if self.client_eof or self.wire.fd < 0:
            return self.wire.close_wire()
        self.lingering = True
        self.wire.resume_wire()
        self.wire.transport.write_eof()
        # The time to linger begins when the answer has left.
        return self.watch_output() if self.wire.queued else self.worker.timers.arm(self.wire, monotonic_ns() + LINGER_NS)

    cdef bint _must_close(self) noexcept:
        cdef BindPlan plan = self.plan
        if self.close_requested or self.worker.draining or self.client_eof:
            return True
        return plan.max_requests != 0 and self.requests >= plan.max_requests or (
            plan.max_duration_ns != 0 and self.last_read_ns - self.accepted_ns >= plan.max_duration_ns)

    cdef bint idle(self) noexcept:
        return self.sink is None and not self.tunnel if self.other is None else self.other.idle()

    # -- ServerStream ------------------------------------------------------------------------------------------------
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        cdef int framing = self._framing(size)
        # Whether a client sends the body now that waited for leave to do so is anyone's guess.
        if not self.request_done and (self.expects_continue or not self.codec.rest_is_small(DRAIN_LIMIT)):
            self.close_requested = True
        return self.codec.send_response(self.worker.to_client, head, framing, length, self._must_close(), self.plan.lower_case)

    cdef int _framing(self, int size) noexcept:
        """How a body ends (RFC 9112 section 6.3): without a length by chunks or, for HTTP/1.0, by closing."""
        if size != SIZE_UNKNOWN:
            return BODY_LENGTH if size == SIZE_KNOWN else BODY_NONE
        if self.codec.request_minor >= 1:
            return BODY_CHUNKED
        self.close_requested = True
        return BODY_UNTIL_CLOSE

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        if self.tail_len:
            self.worker.to_client.append(self.tail, self.tail_len)
            self.tail_len = 0
        if self.codec.send_mode == BODY_NONE:
            return 0          # a step has made a response without content of one that has some
        if n <= COPY_LIMIT or not self.worker.owns(p):
            return self.codec.send_data(self.worker.to_client, p, n)
        if self.codec.send_mode == BODY_CHUNKED:
            # The chunk's own end follows with the next bytes; the payload is written from where it lies.
            self.codec.send_chunk_open(self.worker.to_client, n)
            self.wire.write_out(self.worker.to_client, p, n)
            return self.worker.to_client.append(b"\r\n", 2)
        self.codec.send_borrowed(n)
        self.tail, self.tail_len = p, n
        return 0

    cdef int end_response(self, MessageHead trailers) except -1:
        if trailers is not None and not self.plan.lower_case:
            trailers.flags |= HEAD_KEEPS_CASE
        return self.codec.send_end(self.worker.to_client, trailers)

    cdef int send_informational(self, int status, MessageHead head) except -1:
        if self.codec.request_minor == 0:
            return 0          # HTTP/1.0 has none (RFC 9110 section 15.2)
        self.codec.send_informational(self.worker.to_client, status)
        if head is not None and head.count:
            self.worker.to_client.length -= 2        # the fields go before the empty line
            self.codec._fields(self.worker.to_client, head, self.plan.lower_case)
            self.worker.to_client.append(b"\r\n", 2)
        return 0

    cdef int send_continue(self) except -1:
        if not self.expects_continue:
            return 0
        self.expects_continue = False
        self.codec.send_informational(self.worker.to_client, 100)
        return self.flush()

    cdef int flush(self) except -1:
        cdef int result = self.wire.write_out(self.worker.to_client, self.tail, self.tail_len)
        self.tail_len = 0
        if result == WRITE_FAILED and not self.lost:
            self.wire.abort_wire()
        elif self.wire.queued:
            self.watch_output()
        return result

    cdef bint congested(self) noexcept:
        return self.wire.queued

    cdef bint flush_follows(self) noexcept:
        return self.processing

    cdef int pause_request(self) except -1:
        return self.wire.pause_wire()

    cdef int resume_request(self) except -1:
        return self.wire.resume_wire()

    cdef int close_after(self) except -1:
        self.close_requested = True
        return 0

    cdef int finished(self, bint clean) except -1:
        self.sink = None
        if self.lost:
            return 0
        if not clean:
            return self.abort()
        if self.codec.reusable():
            return self._next_cycle()
        if self.codec.our_keep_alive and not self.close_requested:
            self.wire.resume_wire()
            return 0          # the small rest of the request is still to come and will be dropped
        return self._shutdown()

    cdef int _next_cycle(self) except -1:
        """Keeps the connection open: continues with pipelined input, or starts the idle time-out."""
        self.idle_since_ns = monotonic_ns()
        if self.processing:
            return 0          # the loop of _process() goes on with what follows
        if self.wire.queued:
            return self.wire.pause_wire()     # resume_writing() goes on
        self.codec.start_next_cycle()
        self.request_done = False
        if self.client_eof and self.codec.buffered() == 0:
            return self.wire.close_wire()     # nothing can come any more
        self.wire.resume_wire()
        if self.codec.buffered():
            return self._process()
        return self.worker.timers.arm(self.wire, self.idle_since_ns + self.plan.idle_timeout_ns)

    cdef int _shutdown(self) except -1:
        if not self.request_done:
            return self.linger()
        # Complete request: nothing can come that would make the kernel reset, except pipelined bytes.
        if self.wire.fd >= 0 and not self.client_eof and (self.codec.buffered() > 0 or self.wire.reading_paused):
            return self.linger()
        return self.wire.close_wire()

    cdef int start_tunnel(self) except -1:
        cdef RequestSink sink = self.sink
        cdef bytes left = self.codec.leftover()
        self.tunnel = True
        self.wire.resume_wire()
        if left and sink is not None:
            sink.on_client_tunnel_data(left, len(left))
        return 0

    cdef int send_tunnel_data(self, const char* p, Py_ssize_t n) except -1:
        self.tail, self.tail_len = p, n
        return self.flush()

    cdef int abort(self) except -1:
        cdef RequestSink sink = self.sink
        cdef Takeover other = self.other
        self.sink = self.other = None
        self.tail_len = 0
        self.worker.to_client.clear()
        if sink is not None:
            sink.on_client_gone()
        if other is not None:
            other.lost()
        if not self.lost:
            self.wire.abort_wire()
        return 0

    # -- control -----------------------------------------------------------------------------------------------------
    def close_if_idle(self, int64_t before_ns):
        """Drains: closes the connection if it is idle since before then; otherwise it closes with its next answer."""
        cdef Takeover other = self.other
        if other is not None:
            return other.leave(before_ns)
        # A worker that was kept from running may not have read the next request yet: it is answered first.
        if self.idle() and not self.lingering and self.wire.no_pending_input():
            if self.codec.buffered() == 0 and max(self.last_read_ns, self.idle_since_ns) <= before_ns:
                if self.requests and not self.request_done and self.codec.response_started():
                    self.linger()            # answered early, the rest of the request is on its way
                else:
                    self.wire.close_wire()
                return True
        self.close_requested = True
        return False

    def abort_now(self):
        self.abort()

    @property
    def is_idle(self):
        return self.idle()


cdef class DownstreamWire(Wire):
    cdef int on_bytes(self, Py_ssize_t n) except -1:
        cdef DownstreamConnection connection = <DownstreamConnection>self.owner
        return 0 if connection is None else connection.read(n)
