"""MCP calls that the engine passes on by itself; see direct.pxd. Clients, logs and counts see the same as when Python answers
(headgate.backend.mcp.http_service): each part here names the function there that it stands for.
"""

import collections
import logging

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_TYPE, MessageHead, new_head
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport Backend, RoutedRequest, TAKEN
from headgate_engine.link.client cimport ClientCall, HttpClient
from headgate_engine.link.contract cimport ClientStream
from headgate_engine.link.handler cimport HandlerBackend
from headgate_engine.link.timers cimport Timer
from headgate_engine.mcp.fields cimport add_mirrored, ClientHead, copy_fields, is_message
from headgate_engine.mcp.telemetry cimport RequestTelemetry
from headgate_engine.peek.rpc cimport Message
from headgate_engine.plan.step cimport AsyncStep, CONTINUE, RESPOND, Step
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.sse.encode cimport append_event
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.context.request import derived_context
from headgate_engine.link.client import CallError, Response
from headgate_engine.log.meter cimport place_labels
from headgate_engine.log.meter import route_labels
from headgate_engine.peek.rpc import Kind, NotAMessage, parse
from headgate_engine.sse.decode import SseError

logger = logging.getLogger("headgate.handler")

cdef enum:
    MAX_ANSWER = 16777216                # headgate.backend.mcp.http_service.MAX_BODY
    MAYBE_ANSWERS = 4
    HIGH_WATER = 262144
ACCEPT = b"application/json, text/event-stream"
cdef bytes _accept = ACCEPT
cdef object A_REQUEST = Kind.REQUEST, A_RESPONSE = Kind.RESPONSE


cdef class DirectTarget:
    """How the server is reached. `steps` of its policies run on each call; ValueError for one that may have to wait.
    `timeout_ms` 0: none.
    """

    def __init__(self, HttpClient client not None, str path not None, *, tuple steps not None=(), int64_t timeout_ms=0):
        for step in steps:
            if not isinstance(step, Step) or isinstance(step, AsyncStep):
                raise ValueError("a step that may have to wait runs in Python")
        MessageHead().set_request("POST", path, client.authority.decode("ascii"))
        self.client = client
        self.path = path.encode("ascii")
        self.steps = steps
        self.timeout_ns = timeout_ms * 1000000


cdef class DirectBackend(Backend):
    """Answers plain calls itself and gives the others to `handler`."""

    def __init__(self, HandlerBackend handler not None, DirectTarget target not None, service not None):
        self.handler = handler
        self.target = target
        self.service = service
        self.sessions = service.sessions
        self.client_head = ClientHead.__new__(ClientHead)
        self.wants_body = True

    cdef int dispatch(self, RoutedRequest request) except -1:
        cdef DirectCall call
        request.start_own_attempt()
        call = self._plain(request)
        if call is None:
            request.call = self.handler.begin(request)
        else:
            request.call = call
            call.launch()                # which may hand over at once
        return TAKEN

    cdef DirectCall _plain(self, RoutedRequest exchange):
        """The call of a plain request, None for another one (Front.handle)."""
        cdef RequestContext ctx = exchange.ctx
        cdef MessageHead head = ctx.head
        cdef ClientHead client_head = self.client_head
        cdef Message message
        cdef DirectCall call
        if ctx.trace is not None or exchange.bind.metric_labels is not None or not ctx.body:
            return None
        if head.method_len != 4 or memcmp(head.data + head.method_off, b"POST", 4) or (
                head.path_len == 4 and memcmp(head.data + head.target_off, b"/sse", 4) == 0):
            return None
        client_head.read(head)
        if not client_head.plain:
            return None
        try:
            message = <Message>parse(ctx.body)
        except NotAMessage:
            return None
        if message.kind is not A_REQUEST or message.method == "initialize" or message.meta_version is not None:
            return None
        owner = "" if ctx.jwt is None and ctx.basic_user is None and ctx.api_key_text is None else self.service.owner_of(ctx)
        session = self.sessions.find(client_head.session_id, owner)
        if session is None:
            return None
        call = DirectCall.__new__(DirectCall)
        call.backend = self
        call.exchange = exchange
        call.message = message
        call.session = session
        call.pool = self.target.client.pool
        call.body = message.text
        call.chunks = collections.deque()
        call._make_head()
        return call if call.head is not None else None


cdef class DirectTimer(Timer):
    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef DirectCall call = self.call
        if call is not None:
            call.timed_out = True
            call._hand_over()
        return 0


cdef class DirectCall(ClientCall):
    """One call. Its face for Python is what the telemetry and the handler that takes over need."""

    def __init__(self):
        raise TypeError("a call comes of a DirectBackend")

    # -- towards the target --------------------------------------------------------------------------------------------
    cdef int _make_head(self) except -1:
        """HttpService._headers and target_headers; `head` stays None where Python has to make it."""
        cdef DirectTarget target = self.backend.target
        cdef MessageHead head = new_head()
        cdef bytes name
        head.method_off = head._put(b"POST", 4)
        head.method_len = 4
        head.set_target(target.path, len(target.path))
        head.set_authority(target.client.authority, len(target.client.authority))
        copy_fields(self.exchange.ctx, head)
        head.add_field(b"accept", 6, _accept, len(_accept))
        head.add_field(b"content-type", 12, b"application/json", 16)
        if not add_mirrored(head, self.message):
            return 0
        own = self.session.server.name
        if own is not None:
            name = own.encode("utf-8", "surrogateescape")
            head.add_field(b"mcp-session-id", 14, name, len(name))
        self.head = head
        return 0

    cdef int launch(self) except -1:
        cdef RequestContext ctx = self.exchange.ctx
        cdef int64_t timeout = self.backend.target.timeout_ns
        self.backend.sessions.begin_use(self.session)
        ctx.upstream_started_ns = monotonic_ns()
        if timeout:
            self.deadline = ctx.upstream_started_ns + timeout
            self.timer = DirectTimer.__new__(DirectTimer)
            self.timer.call = self
            self.pool.worker.timers.arm(self.timer, self.deadline)
        if self.backend.target.steps and not self._run_steps():
            return self._hand_over()
        return self.start(False)

    cdef bint _run_steps(self) except -1:
        """Remote.request: the target's policies run on the call as on a request of its own."""
        cdef RequestContext ctx = derived_context(self.exchange.ctx, "POST", "/", "a", (), self.body)
        cdef int verdict
        ctx.head = self.head
        self.head.content_length = len(self.body)
        try:
            for step in self.backend.target.steps:
                verdict = (<Step>step).run(ctx)
                if verdict == RESPOND:
                    self.refusal = ctx.reply
                    return False
                if verdict != CONTINUE:
                    raise TypeError(f"step {(<Step>step).name!r} needs an exchange")
        except Exception as error:  # task boundary: told by the handler, as of any call
            self.failure = error
            return False
        self.body = ctx.body
        return True

    # -- Sink ----------------------------------------------------------------------------------------------------------
    cdef int on_connect_failed(self, bint timed_out, str detail) except -1:
        self.failure = CallError(detail, timed_out)
        self.ended = True
        return self._hand_over()

    cdef int on_response_head(self, MessageHead head) except -1:
        self.response = head
        if self.phase != PHASE_WAITING:
            return 0
        self.phase = self._classify()
        if self.phase == PHASE_STREAM:
            self._disarm()
            return self._begin_stream()
        if self.phase == PHASE_HANDED_OVER:
            self.phase = PHASE_WAITING
            return self._hand_over()
        return 0

    cdef int on_response_data(self, const char* p, Py_ssize_t n) except -1:
        if self.phase == PHASE_STREAM:
            return self._stream(p, n)
        if self.phase != PHASE_WHOLE:
            return ClientCall.on_response_data(self, p, n)
        self.chunks.append(p[:n])
        self.queued += n
        return self._hand_over() if self.queued > MAX_ANSWER else 0

    cdef int on_response_end(self, MessageHead trailers) except -1:
        if self.phase == PHASE_WHOLE:
            self.stream = None
            self.ended = True
            return self._answer_whole() if self.queued else self._hand_over()
        if self.phase == PHASE_STREAM:
            self.stream = None
            self.ended = True
            return self._end_stream()
        return ClientCall.on_response_end(self, trailers)

    cdef int on_upgraded(self) except -1:
        ClientCall.on_upgraded(self)
        return self._hand_over()

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        if self.phase == PHASE_STREAM:
            self.stream = None
            self.ended = True
            return self._stream_lost(f"upstream stream broke off: {detail}")
        ClientCall.on_upstream_failed(self, bytes_seen, detail)
        return self._hand_over()

    cdef int _classify(self) except -1:
        """HttpService._forward, shape_of and _session_fields: what becomes of an answer with this head."""
        cdef MessageHead head = self.response
        cdef int i
        if not 200 <= head.status < 300 or head.status in (202, 204) or head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            return PHASE_HANDED_OVER
        named = head.get("mcp-session-id")
        if named is not None and named != self.session.server.name:
            return PHASE_HANDED_OVER
        i = head.find_id(H_CONTENT_TYPE, 0)
        if i < 0:
            return PHASE_HANDED_OVER
        kind = head.data[head.spans[i].value_off:head.spans[i].value_off + head.spans[i].value_len]
        if kind != b"application/json":
            kind = kind.split(b";")[0].strip().lower()
        if kind == b"application/json":
            return PHASE_WHOLE
        return PHASE_STREAM if kind == b"text/event-stream" else PHASE_HANDED_OVER

    cdef int _disarm(self) except -1:
        if self.timer is not None:
            self.pool.worker.timers.remove(self.timer)
            self.timer.call = None
            self.timer = None
        return 0

    cdef int _hand_over(self) except -1:
        """Python goes on, from the beginning, with what has come of the target until now."""
        cdef RoutedRequest exchange = self.exchange
        if self.phase >= PHASE_HANDED_OVER:
            return 0
        self.phase = PHASE_HANDED_OVER
        self._disarm()
        self._leave()
        self.exchange = None
        if self.timed_out or self.refusal is not None:
            self.abandon()
        elif self.queued > HIGH_WATER and self.stream is not None:
            self.paused = True
            self.stream.pause_response()
        self.successor = self.backend.handler.begin(exchange, self)
        exchange.call = self.successor
        return 0

    cdef int _leave(self) except -1:
        session = self.session
        self.session = None
        if session is not None:
            self.backend.sessions.end_use(session)
        return 0

    # -- towards the client --------------------------------------------------------------------------------------------
    cdef int _told(self) except -1:          # Front.handle
        self.telemetry = RequestTelemetry(
            self, self.message, self.session.id, self.backend.service.target, self.backend.service.count)
        return 0

    cdef int _tell(self, int status, bytes last) except -1:
        cdef RequestTelemetry telemetry = self.telemetry
        self.telemetry = None            # it knows this call: no ring that only the garbage collector finds
        telemetry.ended(status, last)
        return 0

    cdef bytes _event(self):
        cdef ByteBuffer out = ByteBuffer.__new__(ByteBuffer)
        body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        append_event(out, <bytes>body, len(<bytes>body), b"message", None)
        return out.take()

    cdef int _answer_whole(self) except -1:
        """AnswerShape.EVENT: one JSON message becomes one event."""
        cdef RoutedRequest exchange = self.exchange
        cdef bytes event
        self.phase = PHASE_OVER
        self._disarm()
        try:
            event = self._event()
            self._told()
            fields = self.backend.service.event_fields(self._own_session())
            self._tell(self.response.status, event)
            exchange.ctx.head_received_ns = monotonic_ns()
            self._leave()
            exchange.handler_reply(self.response.status, fields, event, None)
        except Exception as error:  # task boundary: the client gets a 500, the worker goes on
            self._broke(error)
        self.exchange = None
        return 0

    def _own_session(self):              # where the answer names the server's
        return None if self.response.get("mcp-session-id") is None else self.session.id

    cdef int _begin_stream(self) except -1:
        """HttpService._stream: the head of an event stream goes on at once."""
        self.answers = []
        self.last = b""
        self.decoder = SseDecoder(MAX_ANSWER)
        self.status = self.response.status
        try:
            self._told()
            fields = self.backend.service.event_fields(self._own_session())
            self.exchange.ctx.head_received_ns = monotonic_ns()
            self.exchange.handler_start(self.status, fields)
        except Exception as error:  # task boundary
            self._broke(error)
        return 0

    cdef int _stream(self, const char* p, Py_ssize_t n) except -1:
        """blocks() and passed(): events go on whole."""
        cdef SseDecoder decoder = self.decoder
        cdef list found = []
        cdef bytes raw, data
        try:
            decoder.feed(p, n)
            while decoder.next():
                raw = decoder.raw[:decoder.raw_len]
                if decoder.has_event:
                    data = decoder.data[:decoder.data_len]
                    raw = self._passed(raw, data)
                found.append(raw)
        except SseError as error:
            return self._stream_lost(f"upstream stream broke off: {error}")
        if found:
            self._send(b"".join(found))
        return 0

    def _passed(self, bytes raw, bytes data):
        """An event with its name: `message` is what no name means, and there are clients that want to see it."""
        if b'"result"' in data or b'"error"' in data:
            self.answers.append(data)
            if len(self.answers) > MAYBE_ANSWERS:
                del self.answers[0]
        if not data or raw.startswith((b"event", b"\xef\xbb\xbf")) or b"\nevent" in raw or b"\revent" in raw:
            return raw
        return b"event: message\n" + raw

    cdef int _send(self, bytes data) except -1:
        cdef RoutedRequest exchange = self.exchange
        if exchange is None or not data:
            return 0
        self.last = data
        exchange.handler_send(data)
        if not self.paused and self.stream is not None and exchange.congested:
            self.paused = True
            self.stream.pause_response()
        return 0

    cdef int _end_stream(self) except -1:
        cdef list found
        try:
            # An event that nothing ends is none, but there are servers that forget the blank line behind the last one.
            found = self.decoder.split(b"\n\n") if self.decoder.rest() else []
        except SseError as error:
            return self._stream_lost(f"upstream stream broke off: {error}")
        if found and all([event is None or is_message(event.data) for _, event in found]):
            self._send(b"".join([raw if event is None else self._passed(raw, event.data) for raw, event in found]))
        return self._finish_stream("upstream stream ended without an answer")

    cdef int _stream_lost(self, str detail) except -1:
        cdef ClientStream stream = self.stream
        self.stream = None
        self.ended = True
        if stream is not None:
            stream.cancel()
        self.add_log_field("mcp.error.message", detail)
        return self._finish_stream("upstream stream broke off")

    cdef int _finish_stream(self, str reason) except -1:
        """Every request gets an answer, unless the client can come back for the rest of the stream."""
        cdef RoutedRequest exchange = self.exchange
        if exchange is None or self.phase != PHASE_STREAM:
            return 0
        self.phase = PHASE_OVER
        try:
            if not self.decoder.last_event_id and not any([self._is_answer(data) for data in self.answers]):
                self._send(self.backend.service.lost_answer(self.message.raw_id, reason))
            self._leave()
            self._tell(self.status, self.last)
            exchange.handler_end()
        except Exception as error:  # task boundary
            self._broke(error)
        self.exchange = None
        return 0

    def _is_answer(self, bytes data):
        cdef Message found
        try:
            found = <Message>parse(data)
        except NotAMessage:
            return False
        return found.kind is A_RESPONSE and (
            found.raw_id == self.message.raw_id or self.backend.service.agree(found.raw_id, self.message.raw_id))

    cdef int _broke(self, error) except -1:
        """A fault of ours: 500 before the head, a broken connection after it (HandlerBackend._run)."""
        cdef RoutedRequest exchange = self.exchange
        logger.exception("handler failed", extra={"handler": self.backend.handler.name})
        self.phase = PHASE_OVER
        self.exchange = None
        self.abandon()
        self._leave()
        exchange.task_failed(f"handler failed: {type(error).__name__}")
        return 0

    # -- called by the exchange ----------------------------------------------------------------------------------------
    def client_writable(self):
        if self.paused and self.stream is not None:
            self.paused = False
            self.stream.resume_response()

    def client_gone(self):
        if self.exchange is None or self.phase >= PHASE_HANDED_OVER:
            return
        self.phase = PHASE_OVER
        self._disarm()
        try:
            if self.telemetry is None:
                self._told()
            self._tell(0, self.last or b"")
        finally:
            self._leave()
            self.exchange = None
            self.abandon()

    # -- called by the telemetry ---------------------------------------------------------------------------------------
    @property
    def context(self):
        """The request's context; None once it is over."""
        return None if self.exchange is None else self.exchange.context

    @property
    def place(self):
        """What is equal for requests with equal route_labels()."""
        return place_labels(self.exchange.ctx, self.exchange.bind)

    def route_labels(self):
        """The labels of its route; while it lasts."""
        return route_labels(self.exchange.ctx, self.exchange.bind)

    def add_log_field(self, str key not None, value):
        if self.exchange is not None and self.exchange.ctx is not None:
            self.exchange.ctx.add_log_field(key, value)

    # -- called by who takes over --------------------------------------------------------------------------------------
    @property
    def remaining_s(self):
        """What is left of the target's time, in seconds; None: there is no limit."""
        return max(0, self.deadline - monotonic_ns()) / 1e9 if self.deadline else None

    def answer(self):
        """The target's answer, of which the head has come; raises what prevented that."""
        if self.timed_out:
            raise TimeoutError
        if self.response is None:
            raise self.failure
        return Response(self)

    def give_up(self):
        self.abandon()
