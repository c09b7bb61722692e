"""MCP calls that the engine makes by itself; see call.pxd. Clients, logs and counts see the same as when Python answers
(headgate.backend.mcp.http_service, headgate.backend.mcp.federation): each part names the function there that it stands for.
"""

import collections
import logging

from libc.stdint cimport int64_t
from libc.string cimport memcmp

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, MessageHead, new_head
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.backend cimport RoutedRequest
from headgate_engine.link.client cimport ClientCall
from headgate_engine.link.contract cimport ClientStream
from headgate_engine.link.timers cimport Timer
from headgate_engine.log.labels cimport place_labels
from headgate_engine.mcp.fields cimport add_mirrored, copy_fields, is_message
from headgate_engine.mcp.sessions cimport SessionEntry
from headgate_engine.mcp.settings cimport CallSettings, DirectTarget
from headgate_engine.mcp.telemetry cimport new_telemetry, RequestTelemetry
from headgate_engine.peek.rpc cimport has_text, RpcMessage, message_of
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.sse.encode cimport append_event
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.context.request import derived_context, log_extra
from headgate_engine.link.client import CallError, ClientResponse
from headgate_engine.log.labels import route_labels
from headgate_engine.mcp.telemetry import response_in
from headgate_engine.peek.rpc import RpcKind, NotAMessage
from headgate_engine.sse.decode import SseError

logger = logging.getLogger("headgate.handler")

cdef enum:
    MAX_ANSWER = 16777216                # headgate.backend.mcp.http_service.MAX_BODY
    MAYBE_ANSWERS = 4
    HIGH_WATER = 262144
ACCEPT = b"application/json, text/event-stream"
NAMED = (b"event", b"\xef\xbb\xbf")
cdef bytes _accept = ACCEPT
cdef object A_RESPONSE = RpcKind.RESPONSE


cdef class DirectTimer(Timer):
    cdef int on_timer(self, int64_t now_ns) except -1:
        cdef DirectCall call = self.call
        if call is not None:
            call.timed_out = call.deadline != 0 and now_ns >= call.deadline
            call._hand_over()
        return 0


cdef DirectCall new_call(
        CallSettings settings, RoutedRequest exchange, RpcMessage message, SessionEntry session, DirectTarget target):
    cdef DirectCall call = DirectCall.__new__(DirectCall)
    call.settings = settings
    call.exchange = exchange
    call.message = message
    call.session = session
    call.target = target
    call.pool, call.calls = target.client.pool, target.client.calls
    call.chunks = collections.deque()
    return call


cdef class DirectCall(ClientCall):
    """One call. Its face for Python is what the telemetry and the handler that takes over need."""

    def __init__(self):
        raise TypeError("a call comes of a DirectBackend")

    # -- towards the target --------------------------------------------------------------------------------------------
    cdef bint make_head(self, str name, tuple without) except -1:
        """HttpService._headers, HttpLink._fields and target_headers."""
        cdef DirectTarget target = self.target
        cdef MessageHead head = new_head()
        cdef bytes own = self.place_there.field, version = self.place_there.version_field
        head.method_off = head._put(b"POST", 4)
        head.method_len = 4
        head.set_target(target.path, len(target.path))
        head.set_authority(target.client.authority, len(target.client.authority))
        copy_fields(self.exchange.ctx, head, without)
        head.add_field(b"accept", 6, _accept, len(_accept))
        head.add_field(b"content-type", 12, b"application/json", 16)
        if not add_mirrored(head, self.message, name):
            return False
        if own is not None:
            head.add_field(b"mcp-session-id", 14, own, len(own))
        if version is not None:
            head.add_field(b"mcp-protocol-version", 20, version, len(version))
        self.head = head
        return True

    cdef int launch(self) except -1:
        cdef RequestContext ctx = self.exchange.ctx
        cdef int64_t timeout = self.target.timeout_ns
        self.settings.sessions.begin(self.session)
        self.started = ctx.upstream_started_ns = monotonic_ns()
        if timeout:
            self.deadline = self.started + timeout
        self._arm()
        if self.target.steps and not self._run_steps():
            return self._hand_over()
        return self.start(False)

    cdef bint _run_steps(self) except -1:
        """Remote.request: the target's policies run on the call as on a separate request."""
        cdef RequestContext ctx = derived_context(self.exchange.ctx, "POST", "/", "a", (), self.body)
        cdef int verdict
        ctx.head = self.head
        self.head.content_length = len(self.body)
        try:
            for step in self.target.steps:
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

    cdef int _arm(self) except -1:
        """The timer fires at the deadline, or when the client needs a keep-alive comment (federation.answering)."""
        cdef int64_t when = self.deadline
        cdef int64_t patience = self.settings.patience_ns
        if patience and (when == 0 or when > self.started + patience):
            when = self.started + patience
        if when == 0:
            return 0
        if self.timer is None:
            self.timer = DirectTimer.__new__(DirectTimer)
            self.timer.call = self
        return self.pool.worker.timers.arm(self.timer, when)

    # -- ResponseSink --------------------------------------------------------------------------------------------------
    cdef int on_connect_failed(self, int failure, str detail) except -1:
        ClientCall.on_connect_failed(self, failure, detail)
        return self._hand_over()

    cdef int on_response_head(self, MessageHead head) except -1:
        if self.phase != PHASE_WAITING:
            return ClientCall.on_response_head(self, head)
        self.response = head
        self.measure()
        self.phase = self._classify()
        if self.phase == PHASE_STREAM:
            self._disarm()
            return self._begin_stream()
        if self.phase == PHASE_HANDED_OVER:
            self.phase = PHASE_WAITING
            return self._hand_over()
        if self.settings.federated:
            # The target's time was for the head (HttpLink._call).
            self.deadline = 0
            self._arm()
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
        if self.phase not in (PHASE_WHOLE, PHASE_STREAM):
            return ClientCall.on_response_end(self, trailers)
        self.stream, self.ended = None, True
        if self.phase == PHASE_STREAM:
            return self._end_stream()
        return self._answer_whole() if self.queued else self._hand_over()

    cdef int on_upgraded(self) except -1:
        ClientCall.on_upgraded(self)
        return self._hand_over()

    cdef int on_upstream_failed(self, bint bytes_seen, str detail) except -1:
        if self.phase == PHASE_STREAM:
            self.stream = None
            self.ended = True
            return self._stream_lost(f"upstream stream broke off: {detail}")
        ClientCall.on_upstream_failed(self, bytes_seen, detail)
        return 0 if self.failure is None else self._hand_over()      # it may have been begun again

    cdef int _classify(self) except -1:
        """HttpService._forward, shape_of and _session_fields, or HttpLink._answer: decides what to do with an answer
        that has this head."""
        cdef MessageHead head = self.response
        cdef bytes own = self.place_there.field
        cdef int i
        if not 200 <= head.status < 300 or head.status in (202, 204) or head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            return PHASE_HANDED_OVER
        if self.settings.federated:
            return PHASE_WHOLE if media_type_is(head, b"application/json", 16) else PHASE_HANDED_OVER
        i = head.find(b"mcp-session-id", 14, 0)
        if i >= 0:
            self.names_session = True
            if own is None or head.spans[i].value_len != len(own) or memcmp(
                    head.data + head.spans[i].value_off, <const char*>own, len(own)):
                return PHASE_HANDED_OVER
        if media_type_is(head, b"application/json", 16):
            return PHASE_WHOLE
        return PHASE_STREAM if media_type_is(head, b"text/event-stream", 17) else PHASE_HANDED_OVER

    cdef int _disarm(self) except -1:
        if self.timer is not None:
            self.pool.worker.timers.remove(self.timer)
            self.timer.call = None
            self.timer = None
        return 0

    cdef int _hand_over(self) except -1:
        """Hands the call over to Python, with all that the target has sent so far."""
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
        self.successor = self.settings.handler.begin(exchange, self)
        exchange.call = self.successor
        return 0

    cdef int _leave(self) except -1:
        cdef SessionEntry session = self.session
        self.session = None
        if session is not None:
            self.settings.sessions.end(session)
        return 0

    # -- towards the client --------------------------------------------------------------------------------------------
    cdef int _begin_telemetry(self) except -1:          # Front.handle
        cdef CallSettings settings = self.settings
        cdef RequestTelemetry telemetry = new_telemetry(
            self, self.exchange.ctx, self.message, self.session.id, settings.service.target, settings.count)
        if self.target_name is not None:
            telemetry._record(self.target_name, self.plain_name, None)
        self.telemetry = telemetry
        return 0

    cdef list _fields(self):
        """The head of an answer, with the session id if the server has sent one."""
        if self.settings.fields is not None and not self.names_session:
            return self.settings.fields
        return self.settings.service.event_fields(self.session.id if self.names_session else None)

    cdef RpcMessage _response(self, bytes body):
        """The response to a federated call, None if Python must process it (LinkGroup.ask, inbound_result)."""
        cdef RpcMessage found
        try:
            found = message_of(body)
        except NotAMessage:
            return None
        if found.kind is not A_RESPONSE or found.raw_id != self.message.raw_id:
            return None
        if found.has_result_object:
            return found if found.result_task is None else None
        return found if found.has_error_object else None

    cdef int _answer_whole(self) except -1:
        """AnswerShape.EVENT: one JSON message becomes one event."""
        cdef RoutedRequest exchange = self.exchange
        cdef RequestTelemetry telemetry
        cdef ByteBuffer out
        cdef bytes body = self.chunks[0] if len(self.chunks) == 1 else b"".join(self.chunks)
        cdef RpcMessage found
        cdef bint maybe_error = True
        cdef int status = self.response.status
        if self.settings.federated:
            found = self._response(body)
            if found is None:
                return self._hand_over()
            maybe_error = found.is_error
            status = 200
        self.phase = PHASE_OVER
        self._disarm()
        try:
            out = ByteBuffer.__new__(ByteBuffer)
            append_event(out, body, len(body), b"message", None)
            self._begin_telemetry()
            fields = self._fields()
            telemetry, self.telemetry = self.telemetry, None     # it knows this call: no ring for the garbage collector
            telemetry.end(status, body, maybe_error)
            self.target.count_call(self.message.method, self.started, body)
            exchange.ctx.head_received_ns = monotonic_ns()
            self._leave()
            exchange.answer_whole(status, fields, out.take(), None)
        except Exception as error:  # task boundary: the client gets a 500, the worker goes on
            self._broke(error)
        self.exchange = None
        return 0

    cdef int _begin_stream(self) except -1:
        """HttpService._stream: the head of an event stream is sent on at once."""
        cdef RoutedRequest exchange = self.exchange
        self.answers, self.last = [], b""
        self.decoder = SseDecoder(MAX_ANSWER)
        self.status = self.response.status
        try:
            self._begin_telemetry()
            fields = self._fields()
            exchange.ctx.head_received_ns = monotonic_ns()
            exchange.answer_start(self.status, fields)
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

    cdef bytes _passed(self, bytes raw, bytes data):
        """An event with a name: `message` is the default, but some clients require it."""
        if has_text(data, b'"result"', 8) or has_text(data, b'"error"', 7):
            self.answers.append(data)
            if len(self.answers) > MAYBE_ANSWERS:
                del self.answers[0]
        if not data or raw.startswith(NAMED) or has_text(raw, b"\nevent", 6) or has_text(raw, b"\revent", 6):
            return raw
        return b"event: message\n" + raw

    cdef int _send(self, bytes data) except -1:
        cdef RoutedRequest exchange = self.exchange
        if exchange is None or not data:
            return 0
        self.last = data
        exchange.answer_send(data)
        if not self.paused and self.stream is not None and exchange.congested():
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
        return self._finish_stream("upstream stream ended without an answer", False)

    cdef int _stream_lost(self, str detail) except -1:
        cdef ClientStream stream = self.stream
        self.stream = None
        self.ended = True
        if stream is not None:
            stream.cancel()
        self.add_log_field("mcp.error.message", detail)
        return self._finish_stream("upstream stream broke off", True)

    cdef int _finish_stream(self, str reason, bint broken) except -1:
        """Answers a request whose stream has ended early, unless the client can resume the stream."""
        cdef RoutedRequest exchange = self.exchange
        cdef RequestTelemetry telemetry
        if exchange is None or self.phase != PHASE_STREAM:
            return 0
        self.phase = PHASE_OVER
        try:
            found = [data for data in self.answers if self._is_answer(data)]
            if found:
                self.target.count_call(self.message.method, self.started, found[-1])
            elif not self.decoder.last_event_id:
                self.target.count_unanswered(self.started, reason, broken)
                self._send(self.settings.service.lost_answer(self.message.raw_id, reason))
            self._leave()
            telemetry, self.telemetry = self.telemetry, None
            telemetry.end(self.status, response_in(self.last), True)
            exchange.answer_end()
        except Exception as error:  # task boundary
            self._broke(error)
        self.exchange = None
        return 0

    def _is_answer(self, bytes data):
        cdef RpcMessage found
        try:
            found = message_of(data)
        except NotAMessage:
            return False
        return found.kind is A_RESPONSE and (
            found.raw_id == self.message.raw_id or self.settings.service.agree(found.raw_id, self.message.raw_id))

    cdef int _broke(self, error) except -1:
        """Handles an unexpected error: 500 before the head, a broken connection after it (HandlerBackend._run)."""
        cdef RoutedRequest exchange = self.exchange
        logger.exception("handler failed", extra=log_extra(exchange.ctx, handler=self.settings.handler.name))
        self.phase = PHASE_OVER
        self.exchange = None
        self.abandon()
        self._leave()
        exchange.answer_failed(f"handler failed: {type(error).__name__}")
        return 0

    # -- called by the exchange ----------------------------------------------------------------------------------------
    def client_writable(self):
        if self.paused and self.stream is not None:
            self.paused = False
            self.stream.resume_response()

    def client_gone(self):
        cdef RequestTelemetry telemetry
        if self.exchange is None or self.phase >= PHASE_HANDED_OVER:
            return
        self.phase = PHASE_OVER
        self._disarm()
        try:
            if self.telemetry is None:
                self._begin_telemetry()
            telemetry, self.telemetry = self.telemetry, None
            telemetry.end(0, response_in(self.last or b""), True)
        finally:
            self._leave()
            self.exchange = None
            self.abandon()

    # -- called by the telemetry ---------------------------------------------------------------------------------------
    @property
    def context(self):
        """The request's context; None once it is over."""
        return None if self.exchange is None else self.exchange.ctx

    @property
    def place(self):
        """A key that is equal for requests with equal route_labels()."""
        return place_labels(self.exchange.ctx, self.exchange.bind)

    def route_labels(self):
        """The labels of its route; only while the request is in progress."""
        return route_labels(self.exchange.ctx, self.exchange.bind)

    def add_log_field(self, str key not None, value):
        if self.exchange is not None and self.exchange.ctx is not None:
            self.exchange.ctx.add_log_field(key, value)

    # -- called by who takes over --------------------------------------------------------------------------------------
    @property
    def remaining_s(self):
        """The seconds until the deadline of the target; None without a limit."""
        return max(0, self.deadline - monotonic_ns()) / 1e9 if self.deadline else None

    @property
    def waited_s(self):
        """The seconds since the start of the call."""
        return (monotonic_ns() - self.started) / 1e9

    async def wait_for_head(self):
        """Waits for the head of the answer or a failure; then `answer()` returns or raises it."""
        if self.response is None and self.failure is None and not self.ended:
            self.head_ready = self.pool.worker.loop.create_future()
            try:
                await self.head_ready
            except CallError:
                pass
            finally:
                self.head_ready = None

    def answer(self):
        """The answer of the target, whose head has arrived. Raises the error that prevented it."""
        if self.timed_out:
            raise TimeoutError
        if self.response is None:
            raise self.failure
        return ClientResponse(self)

    def give_up(self):
        self.abandon()
