"""A request and its response, passed through an external processor on their way; see processed.pyi.

What the session does is in Python, once per message of the processor. A body that the processor does not want to see
passes here without it.

A session may end the request, which lets go of the stream: so a method that engine code calls holds it (`held`).
"""

import collections
import logging

from headgate_engine.context.headers cimport HEAD_CHUNKED, HEAD_CONNECT, HEAD_EXPECT_CONTINUE, HEAD_UPGRADE, MessageHead
from headgate_engine.context.request cimport BODY_UNREAD, BODY_WHOLE, Reply, RequestContext
from headgate_engine.link.collector cimport BodyCollector
from headgate_engine.link.contract cimport SIZE_KNOWN, SIZE_NONE, SIZE_UNKNOWN
from headgate_engine.link.core cimport END_BROKEN, END_CLEAN, RequestCore
from headgate_engine.link.filter cimport StreamFilter
from headgate_engine.link.grpc_stream cimport GrpcDuplexCall
from headgate_engine.link.lane cimport LANE_DROPS, LANE_FEEDS, LANE_GATHERS, LANE_HOLDS, LANE_PASSES, new_lane, Lane
from headgate_engine.link.response cimport put_collected
from headgate_engine.plan.step cimport CONTINUE, RESPOND
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t

from headgate_engine.context.request import log_extra

PASSES, HOLDS, GATHERS, FEEDS, DROPS = LANE_PASSES, LANE_HOLDS, LANE_GATHERS, LANE_FEEDS, LANE_DROPS
KEPT, UNKNOWN_LENGTH = -2, -1

cdef enum:
    # What the processor has made of a request body and the backend does not take yet. Beyond it the processor is not read.
    MOST_QUEUED = 262144

logger = logging.getLogger("headgate.processing")


cdef class ProcessedStream(StreamFilter):
    def __init__(self, RequestContext ctx not None, session not None):
        cdef RequestCore request = <RequestCore?>ctx.exchange
        self.request = request
        self.session = session
        self.incoming, self.outgoing = new_lane(False), new_lane(True)
        self.outer = request.client
        if request.filter is None:
            request.filter = self
        else:
            (<StreamFilter?>request.client).inner = self
        request.client = self

    def set_stream(self, GrpcDuplexCall grpc):
        """Remember the call to the processor."""
        self.grpc = grpc

    @property
    def request_content(self):
        cdef MessageHead head
        if self.request is None:
            return False
        head = self.request.ctx.head
        if head.flags & (HEAD_UPGRADE | HEAD_CONNECT):
            return False
        if self.request.ctx.body_state == BODY_WHOLE:
            return len(self.request.ctx.body) > 0
        return head.content_length > 0 or head.flags & HEAD_CHUNKED != 0

    @property
    def blocked(self):
        return self.request is not None and self.stuck()

    @property
    def whole(self):
        return self.whole or self.request is not None and not self.taken and self.request.ctx.body_state == BODY_WHOLE

    # -- the request ---------------------------------------------------------------------------------------------------
    cdef int request_data(self, const char* p, Py_ssize_t n) except -1:
        cdef ProcessedStream held = self
        return 0 if held.incoming.ended else held.take_in(held.incoming, p, n)

    cdef int request_end(self, MessageHead trailers) except -1:
        cdef ProcessedStream held = self
        return held.take_end(held.incoming, trailers)

    cdef int hand_on(self, const char* p, Py_ssize_t n) except -1:
        """Gives a piece of the request body to the request, or to the next filter."""
        cdef RequestCore request = self.request
        cdef StreamFilter inner = self.inner
        return request.take_request_data(p, n) if inner is None else inner.request_data(p, n)

    cdef int hand_on_end(self, MessageHead trailers) except -1:
        cdef RequestCore request = self.request
        cdef StreamFilter inner = self.inner
        return request.take_request_end(trailers) if inner is None else inner.request_end(trailers)

    cdef int take_over(self) except -1:
        """Takes the part of the request body that has come: from here on all of it goes through here."""
        cdef RequestCore request = self.request
        cdef RequestContext ctx = request.ctx
        cdef BodyCollector collector = request.collector
        cdef bytes data = b""
        cdef MessageHead trailers = None
        cdef bint ended = request.request_done
        self.taken = True
        if ctx.body_state == BODY_WHOLE:
            self.whole = ended = True
            data = ctx.body
        elif collector is not None:
            data = collector.waiting.take()
            trailers, collector.trailers = collector.trailers, None
        ctx.body = None
        ctx.body_state = BODY_UNREAD
        request.request_done = False
        if ctx.head.flags & HEAD_EXPECT_CONTINUE and not ended:
            self.outer.send_continue()
        if data:
            self.take_in(self.incoming, data, len(data))
        if self.request is None:
            return 0
        if ended:
            return self.take_end(self.incoming, trailers)
        return self.outer.resume_request() if self.incoming.mode in (LANE_GATHERS, LANE_FEEDS) else 0

    cdef int empty_queue(self) except -1:
        """Hands on what the processor has made of the request body, as long as the request takes it."""
        cdef RequestCore request = self.request
        cdef bytes data
        while self.queue and not self.refuses and self.request is not None:
            data = self.queue.popleft()
            self.queued -= len(data)
            self.hand_on(data, len(data))
        if self.request is None or self.queue:
            return 0
        if self.queued_end:
            self.queued_end = False
            self.hand_on_end(self.queued_trailers)
        if self.request is not None and not request.client.flush_follows():
            request.on_request_flush()
        return 0

    cdef int pause_request(self) except -1:
        cdef ProcessedStream held = self
        held.refuses = True
        return held.outer.pause_request() if held.incoming.mode == LANE_PASSES else held.regulate()

    cdef int resume_request(self) except -1:
        cdef ProcessedStream held = self
        held.refuses = False
        if held.queue or held.queued_end:
            held.empty_queue()
        if held.request is None:
            return 0
        if held.incoming.mode == LANE_PASSES and not held.refuses:
            return held.outer.resume_request()
        return held.regulate()

    def set_request_length(self, int64_t length):
        """Set what is known of the request body's length."""
        cdef MessageHead head
        if self.request is None or length == KEPT or self.whole:
            return
        head = self.request.ctx.head
        head.content_length = length
        head.flags = head.flags | HEAD_CHUNKED if length < 0 else head.flags & ~<uint32_t>HEAD_CHUNKED

    def replace_request(self, bytes body not None):
        """Put another body in the place of the client's."""
        if self.request is None:
            return
        self.incoming.mode = LANE_DROPS
        self.incoming.finished = True
        self.request.ctx.replace_body(body)
        self.request.request_done = True

    # -- the response --------------------------------------------------------------------------------------------------
    cdef int start_response(self, MessageHead head, int size, int64_t length) except -1:
        cdef ProcessedStream held = self
        cdef RequestCore request = held.request
        held.head, held.size, held.length = head, size, length
        if head.status == 101 or request.ctx.head.flags & HEAD_CONNECT and head.status < 300:
            held.leave()
        if held.bypassed:
            return held.emit_start(size, length)
        held.outgoing.mode = LANE_HOLDS
        held._tell("head", head, size != SIZE_NONE)
        return 0

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        cdef ProcessedStream held = self
        return held.take_in(held.outgoing, p, n)

    cdef int end_response(self, MessageHead trailers) except -1:
        cdef ProcessedStream held = self
        return held.take_end(held.outgoing, trailers)

    cdef int emit_start(self, int size, int64_t length) except -1:
        cdef RequestContext ctx = self.request.ctx
        if self.owes_headers:
            self.owes_headers = False
            put_collected(ctx)
        self.begun = True
        ctx.status = self.head.status
        ctx.response = self.head
        return self.outer.start_response(self.head, size, length)

    def begin_response(self, int64_t length):
        """Send the head of the response on."""
        cdef int size = self.size
        if self.request is None or self.begun or self.head is None:
            return
        if size == SIZE_NONE or length == KEPT:
            length = self.length
        else:
            size = SIZE_UNKNOWN if length == UNKNOWN_LENGTH else SIZE_KNOWN
        if size != SIZE_NONE:
            self.head.content_length = length if size == SIZE_KNOWN else -1
        self.emit_start(size, length)

    cdef bint congested(self) noexcept:
        cdef Lane lane = self.outgoing
        if lane.mode == LANE_HOLDS:
            return lane.held is not None and lane.held.length > 0
        if lane.mode == LANE_FEEDS and self.grpc is not None and self.grpc.congested:
            return True
        return self.outer.congested()

    cdef bint flush_follows(self) noexcept:
        return self.delivering or self.outer.flush_follows()

    cdef bint stuck(self) noexcept:
        """Whether the client takes no more of the response now."""
        return self.begun and not self.outgoing.finished and self.outer.congested()

    cdef int client_writable(self) except -1:
        cdef ProcessedStream held = self
        held.regulate()
        held._tell("unblocked")
        return held.wake_source()

    cdef int wake_source(self) except -1:
        """Lets the source of the response go on, if there is room for it."""
        cdef RequestCore request = self.request
        cdef StreamFilter inner = self.inner
        if request is None or self.congested():
            return 0
        return request.source_writable() if inner is None else inner.client_writable()

    cdef bint drained(self) noexcept:
        if not self.bypassed and self.head is not None and not self.outgoing.finished:
            return False
        return self.inner is None or self.inner.drained()

    cdef bint changes_response(self) noexcept:
        return not self.bypassed and self.session is not None or (
            self.inner is not None and self.inner.changes_response())

    cdef int bypass(self) except -1:
        cdef ProcessedStream held = self
        cdef StreamFilter inner = held.inner
        held.leave()
        held.owes_headers = False
        return 0 if inner is None else inner.bypass()

    cdef int leave(self) except -1:
        """What follows passes; what waits of a response is dropped."""
        self.bypassed = True
        self.outgoing = new_lane(True)
        if self.incoming.mode != LANE_DROPS:
            self.incoming.mode = LANE_PASSES
            self.incoming.watches_end = False
            self.incoming.held = None
        self._tell("own_answer")
        return 0

    def _tell(self, str name, *args):
        """Call the session. What fails in it ends the request."""
        cdef RequestCore request = self.request
        cdef object session = self.session
        if session is None:
            return
        try:
            getattr(session, name)(*args)
        except Exception as error:  # task boundary: a 500 for this request
            logger.exception("processing failed", extra=log_extra(request.ctx))
            request.answer_failed(f"processing failed: {type(error).__name__}")

    # -- both directions -----------------------------------------------------------------------------------------------
    cdef int take_in(self, Lane lane, const char* p, Py_ssize_t n) except -1:
        if lane.mode == LANE_PASSES:
            return self.let_through(lane, p, n)
        if lane.mode == LANE_FEEDS:
            self._tell("data", lane.of_response != 0, p[:n])
            return self.regulate()
        if lane.mode == LANE_DROPS:
            return 0
        lane.keep(p, n)
        if lane.mode == LANE_GATHERS and lane.held.length > lane.limit and not lane.full:
            lane.full = True
            self._tell("full", lane.of_response != 0)
        return self.regulate()

    cdef int take_end(self, Lane lane, MessageHead trailers) except -1:
        if lane.ended:
            return 0
        lane.ended, lane.trailers = True, trailers
        if lane.mode == LANE_DROPS or lane.mode == LANE_HOLDS or lane.full:
            return 0
        if lane.mode == LANE_PASSES and (trailers is None or not lane.watches_end):
            return self.let_end_through(lane, trailers)
        self._tell("end", lane.of_response != 0, trailers)
        return 0

    cdef int let_through(self, Lane lane, const char* p, Py_ssize_t n) except -1:
        if lane.of_response:
            self.sent += n
            return self.outer.send_body(p, n)
        if self.request is None:
            return 0
        if self.queue:
            self.queue.append(p[:n])
            self.queued += n
            return self.outer.pause_request()
        return self.hand_on(p, n)

    cdef int let_end_through(self, Lane lane, MessageHead trailers) except -1:
        cdef RequestCore request = self.request
        if lane.finished or request is None:
            return 0
        lane.finished = True
        if not lane.of_response:
            if self.queue:
                self.queued_end, self.queued_trailers = True, trailers
                return 0
            return self.hand_on_end(trailers)
        self.outer.end_response(trailers)
        if request.filter is not None and request.filter.ending:
            self.outer.flush()
            return request.finish(END_CLEAN)
        return 0

    def set_mode(self, bint response, int mode, Py_ssize_t limit=0, bint watch=False):
        """Say what becomes of a body from here on."""
        cdef Lane lane = self.outgoing if response else self.incoming
        cdef ByteBuffer held
        cdef bint waited = lane.mode == LANE_HOLDS
        cdef bint takes_over = not response and not self.taken and mode in (LANE_GATHERS, LANE_FEEDS)
        if self.request is None or (lane.finished or lane.mode == LANE_DROPS) and not takes_over:
            return
        lane.mode, lane.limit, lane.watches_end, lane.full = mode, limit, watch, False
        if takes_over:
            lane.ended = lane.finished = False
            self.take_over()
            return
        held, lane.held = lane.held, None
        if not response and self.whole and mode == LANE_PASSES:
            self.replace_request(b"".join(self.queue or ()) + (b"" if held is None else held.take()))
            return
        if held is not None and held.length:
            self.take_in(lane, held.data, held.length)
        if self.request is not None and lane.ended and not lane.finished and lane.mode == mode:
            lane.ended = False
            self.take_end(lane, lane.trailers)
        if self.request is None:
            return
        if response and waited and not self.congested():
            self.client_writable()
        elif not response:
            self.regulate()

    def gathered(self, bint response, Py_ssize_t most=-1):
        """Take what was gathered."""
        return (self.outgoing if response else self.incoming).take(most)

    def send(self, bint response, bytes data not None, Py_ssize_t at=0, Py_ssize_t size=-1):
        """Send a piece of a body on: `size` bytes of the data from `at` on."""
        cdef Lane lane = self.outgoing if response else self.incoming
        size = len(data) - at if size < 0 else size
        if not 0 <= at <= at + size <= len(data):
            raise ValueError("beyond the data")
        if self.request is None or lane.finished or size == 0:
            return
        if response:
            self.let_through(lane, <const char*>data + at, size)
        elif self.whole or self.refuses or self.queue:
            self.queue = collections.deque() if self.queue is None else self.queue
            self.queue.append(data[at:at + size])
            self.queued += size
        else:
            self.hand_on(<const char*>data + at, size)
        self.regulate()

    def end(self, bint response, MessageHead trailers=None):
        """Send the end of a body on."""
        cdef Lane lane = self.outgoing if response else self.incoming
        if self.request is None or lane.finished:
            return
        if response:
            self.let_end_through(lane, trailers)
            lane.mode = LANE_DROPS
            return
        lane.finished = True
        lane.mode = LANE_DROPS
        if self.whole:
            self.request.ctx.replace_body(b"".join(self.queue or ()))
            self.request.request_done = True
            self.queue = None
            self.queued = 0
        elif self.queue:
            self.queued_end, self.queued_trailers = True, trailers
        else:
            self.hand_on_end(trailers)
        if self.request is not None and not lane.ended:
            self.outer.resume_request()

    cdef int regulate(self) except -1:
        """Pauses what would have to be kept, and what is not taken."""
        cdef Lane lane = self.incoming
        cdef GrpcDuplexCall grpc = self.grpc
        if self.request is None:
            return 0
        if self.taken and not lane.ended and lane.mode != LANE_PASSES:
            if lane.mode == LANE_HOLDS or lane.full or lane.mode == LANE_FEEDS and grpc is not None and grpc.congested:
                self.outer.pause_request()
            else:
                self.outer.resume_request()
        if grpc is not None:
            if self.queued > MOST_QUEUED and not self.whole or self.stuck():
                grpc.pause()
            else:
                grpc.resume()
        return 0

    def processor_writable(self):
        """Let the sources of what is fed go on."""
        self.regulate()
        if self.outgoing.mode == LANE_FEEDS:
            self.wake_source()

    def push(self):
        """Send what was written."""
        cdef RequestCore request = self.request
        self.delivering = False
        if request is not None:
            self.outer.flush()
        if self.request is not None and request.client is not None:
            request.on_request_flush()

    # -- the request's fate --------------------------------------------------------------------------------------------
    def suspend(self):
        """The step that has made this suspends the request."""
        self.suspended = True

    def go_on(self):
        """Continue the request if it is suspended."""
        cdef RequestCore request = self.request
        if self.suspended and request is not None:
            self.suspended = False
            request.resume(CONTINUE)

    def fail(self, Reply reply not None, str detail):
        """Answer with `reply`, or break the response off."""
        cdef RequestCore request = self.request
        if request is None:
            return
        if request.filter is not None and request.filter.begun:
            request.ctx.error = detail or "the response was broken off"
            request.note_outcome("broken")
            request.drop_attempt()
            request.client.flush()
            request.finish(END_BROKEN)
            return
        if detail is not None:
            request.ctx.error = detail
        if self.suspended:
            self.suspended = False
            request.ctx.reply = reply
            request.resume(RESPOND)
            return
        if request.call is not None and request.destination is not None:
            request.destination.timed_out(request)      # nobody waits for its answer any more
        request.respond(reply)

    def give_up_source(self):
        """End the call to the backend."""
        cdef RequestCore request = self.request
        if request is None or request.filter.ending:
            return
        if request.call is not None:
            request.destination.timed_out(request)
        request.drop_attempt()
        request.finish(END_CLEAN)

    cdef int close(self) except -1:
        cdef object session = self.session
        cdef StreamFilter inner = self.inner
        if self.request is not None and self.request.filter is self and self.sent and not self.bypassed:
            self.request.ctx.response_bytes = self.sent
        self.session = self.grpc = self.request = self.inner = self.queue = None
        if session is not None:
            session.closed()
        return 0 if inner is None else inner.close()
