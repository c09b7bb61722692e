"""One answer of several calls; see fan.pxd.

One failure is the answer: of the calls that still run, none is of use to a client that wants all of it.
"""

import asyncio
import logging

from headgate_engine.context.headers cimport MessageHead, new_head
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.link.client cimport ClientCall
from headgate_engine.link.contract cimport WRITE_DONE, ClientStream, ResponseSink
from headgate_engine.link.pool cimport Pool
from headgate_engine.llm.answer_body cimport AnswerBody, answer_body
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.modalities cimport take_parts
from headgate_engine.llm.target cimport FormatRoute, LlmTarget
from headgate_engine.llm.translate.converter cimport StreamConverter
from headgate_engine.llm.translate.writers cimport Writer
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport coding_of

from headgate_engine.context.request import derived_context, log_extra
from headgate_engine.link.client import CallError
from headgate_engine.llm.answer_body import TOO_LARGE
from headgate_engine.llm.translate.writers import dump_json
from headgate_engine.plan.step import settle
from headgate_engine.wire.coding import CodingError, DecodedTooLong

logger = logging.getLogger("headgate.llm")

# Calls of one request at a time.
AT_ONCE = 8
# Fields that belong to one message, or to its connection.
OWN_FIELDS = frozenset(("host", "content-length", "transfer-encoding", "connection", "expect", "te", "trailer"))
cdef bytes UNSUPPORTED = b"x-gw-unsupported-parameters"
cdef bytes JSON = b"application/json"
cdef bytes EVENTS = b"text/event-stream"


class Refused(Exception):
    """One call came to an answer that is none: its status and body, in the client's format, are the answer to all."""

    def __init__(self, int status, bytes body not None):
        super().__init__(status)
        self.status, self.body = status, body


class StreamFailed(Exception):
    """The stream of one choice is broken, and the client has got the error."""


cdef FanPool fan_pool(Pool real, RequestContext ctx, LlmCall call):
    cdef int count
    cdef FanPool fan = FanPool.__new__(FanPool)
    cdef FormatRoute route = <FormatRoute>call.format_route
    fan.real, fan.ctx, fan.call, fan.route = real, ctx, call, route
    fan.limit = (<LlmTarget>call.target).max_answer
    fan.others = call.translation_state.others
    fan.count = count = call.translation_state.choices + len(fan.others)
    fan.key, fan.endpoint, fan.worker, fan.protocol = real.key, real.endpoint, real.worker, real.protocol
    fan.tap = FanTap.__new__(FanTap)
    fan.tap.call = call
    fan.tap.stream_error = route.stream_error
    fan.tap.counts = [None] * count
    return fan


cdef class FanPool(Pool):
    cdef bint acquire(self, ResponseSink sink, bint fresh, bint probe) except -1:
        cdef FanStream stream = FanStream.__new__(FanStream)
        stream.fan = self
        stream.sink = sink
        stream.body = ByteBuffer.__new__(ByteBuffer)
        stream.calls = [None] * self.count
        sink.on_connected(stream)
        return True

    cdef int withdraw(self, ResponseSink sink) except -1:
        return 0


cdef class FanStream(ClientStream):
    # -- the request ---------------------------------------------------------------------------------------------------
    cdef int send_head(self, MessageHead head, int size, int64_t length, bint upgrade) except -1:
        self.head = head
        return 0

    cdef int send_body(self, const char* p, Py_ssize_t n) except -1:
        return self.body.append(p, n)

    cdef int send_end(self, MessageHead trailers) except -1:
        self.task = self.fan.worker.spawn("calls for one answer", self._run(self.body.take()))
        return 0

    cdef int flush(self) except -1:
        return WRITE_DONE

    cdef bint congested(self) noexcept:
        return False

    cdef bint reused(self) noexcept:
        return False

    cdef bint unprocessed(self) noexcept:
        return False

    cdef int pause_response(self) except -1:
        if self.resumed is None and self.sink is not None:
            self.resumed = self.fan.worker.loop.create_future()
        return 0

    cdef int resume_response(self) except -1:
        resumed = self.resumed
        self.resumed = None
        if resumed is not None and not resumed.done():
            resumed.set_result(None)
        return 0

    cdef int cancel(self) except -1:
        task = self.task
        self.sink = self.task = None
        self._give_up()
        if task is not None:
            task.cancel()
        return 0

    cdef int _give_up(self) except -1:
        cdef ClientCall call
        for call in self.calls:
            if call is not None:
                call.abandon()
        return 0

    # -- the answer ----------------------------------------------------------------------------------------------------
    async def _run(self, bytes body):
        cdef ResponseSink sink
        try:
            await self._answer(body)
        except asyncio.CancelledError:
            raise
        except StreamFailed:
            pass
        except Refused as refused:
            self._begin(refused.status, JSON, len(refused.body))
            self._pass_on(refused.body)
            self._end()
        except CallError as error:
            sink = self.sink
            self.sink = None
            if sink is not None:
                sink.on_upstream_failed(self.begun, str(error))
        except Exception as error:  # task boundary: the request fails
            logger.exception("the parts of an answer cannot be put together", extra=log_extra(self.fan.ctx))
            sink = self.sink
            self.sink = None
            if sink is not None:
                sink.on_upstream_failed(self.begun, f"parts of an answer cannot be put together: {type(error).__name__}")
        finally:
            self.task = None
            self._give_up()

    async def _answer(self, bytes body):
        cdef FanPool fan = self.fan
        self.left = fan.limit
        if fan.call.streaming:
            await self._stream(body)
        else:
            await self._whole(body)

    async def _call(self, int at, bytes body):
        """Begins the call for one part of the answer; `body` is that of the first."""
        cdef FanPool fan = self.fan
        cdef MessageHead head = self.head
        cdef MessageHead first = fan.ctx.head
        cdef RequestContext own
        cdef ClientCall call
        if at and fan.others:
            # It says something else than the first: it is signed by itself.
            body = dump_json(fan.others[at - 1])
            fields = [(name, value) for name, value in first.items() if name.lower() not in OWN_FIELDS]
            own = derived_context(fan.ctx, first.method, first.target, first.authority, fields, body)
            for step in (<LlmTarget>fan.call.target).plan.final_steps:
                refused = await settle(step, own)
                if refused is not None:
                    raise Refused(*fan.route.translation.error(refused.status, refused.body, fan.call.translation_state))
            head, body = own.head, own.body
        call = ClientCall(fan.real, head, body)
        if at and fan.worker.meters.segment is not None:
            # The attempt is counted as one call, which the first one is.
            call.calls = fan.worker.meters.calls_of(fan.ctx.protocol)
        self.calls[at] = call
        call.start(False)
        return call

    async def _head_of(self, ClientCall call):
        """Waits for the head of one answer. An error is the answer to all of them, as soon as it is there."""
        cdef FanPool fan = self.fan
        await call.head_ready
        if not 200 <= call.response.status < 300:
            body = await self._body(call)
            raise Refused(*fan.route.translation.error(call.response.status, body, fan.call.translation_state))

    async def _piece(self, ClientCall call):
        """The next piece of one answer. The request sees only what all calls say: here each is held to the longest pause."""
        cdef int64_t stall = (<LlmTarget>self.fan.call.target).plan.stall_ns
        if not stall:
            return await call.next_chunk()
        try:
            async with asyncio.timeout(stall / 1e9):
                return await call.next_chunk()
        except TimeoutError:
            raise CallError("the provider sends nothing any more", True) from None

    async def _body(self, ClientCall call):
        """A whole body of the provider, decoded. All of one request share one bound."""
        cdef FanPool fan = self.fan
        cdef AnswerBody kept = answer_body(fan.limit)
        cdef bytes piece
        cdef str fault = None
        work = fan.route.translation
        while True:
            piece = await self._piece(call)
            if not piece:
                break
            self.left -= len(piece)
            fault = TOO_LARGE if self.left < 0 else kept.keep(piece, len(piece))
            if fault is not None:
                raise Refused(*work.broken(fault))
        given = call.response.get("content-encoding")
        coding = coding_of(given)
        if coding is None:
            return kept.take()
        try:
            if coding:
                piece = await work.plain(coding, kept.take(), self.left)
                self.left -= len(piece)
                return piece
        except DecodedTooLong:
            raise Refused(*work.broken(TOO_LARGE)) from None
        except (CodingError, ValueError):
            pass
        raise Refused(*work.broken(f"the provider's answer cannot be decoded: {given}"))

    async def _whole(self, bytes body):
        answers = [None] * self.fan.count
        await self._all([self._part(at, body, answers) for at in range(self.fan.count)])
        made = await self.fan.route.translation.together(answers)
        self._begin(200, JSON, len(made))
        self._pass_on(made)
        self._end()

    async def _all(self, list parts):
        """Does all parts, some at a time; what one of them raises ends the others, and is raised here."""
        waiting = iter(parts)
        self.tasks = [self.fan.worker.spawn("a part of an answer", self._some(waiting))
                      for _ in range(min(AT_ONCE, self.fan.count))]
        try:
            await asyncio.gather(*self.tasks, return_exceptions=True)
        finally:
            for one in self.tasks:
                one.cancel()
            for one in waiting:
                one.close()
        if self.failure is not None:
            raise self.failure

    async def _some(self, waiting):
        try:
            for part in waiting:
                await part
        except Exception as error:  # task boundary: _all() raises it
            if self.failure is None:
                self.failure = error
            for one in self.tasks:
                one.cancel()

    async def _part(self, int at, bytes body, list answers):
        """Keeps one part of a whole answer, in the client's format."""
        cdef FanPool fan = self.fan
        cdef ClientCall call = await self._call(at, body)
        await self._head_of(call)
        body = await self._body(call)
        # A long one is translated beside the loop.
        status, told, counts, model = await fan.route.translation.part(body, fan.call.translation_state, call.response)
        fan.tap.counts[at] = (counts, model)
        if status != 200:
            raise Refused(status, told)
        answers[at] = told

    async def _stream(self, bytes body):
        cdef FanPool fan = self.fan
        fan.tap.events = True
        self.good = fan.worker.loop.create_future()
        self.merged = fan.route.translation.merged(fan.count)
        await self._all([self._follow(at, body) for at in range(fan.count)])
        if not self.begun:
            self._begin(200, EVENTS, -1)
        self._end()

    async def _follow(self, int at, bytes body):
        """Passes the stream of one choice on as it comes."""
        cdef FanPool fan = self.fan
        cdef ClientCall call = await self._call(at, body)
        cdef StreamConverter stream
        cdef bytes piece, told
        work = fan.route.translation
        await self._head_of(call)
        self.heads += 1
        if self.heads == fan.count:
            self.good.set_result(None)
        stream = work.stream(work.another(fan.call.translation_state), call.response)
        fault = None
        try:
            given = call.response.get("content-encoding")
            if coding_of(given) is not None:
                fault = f"the provider's stream is encoded: {given}"
            while fault is None:
                piece = await self._piece(call)
                if not piece:
                    break
                told = stream.feed(piece)
                fan.tap.counts[at] = work.usage(stream)
                await self._tell(at, stream, told)
                if stream.finished:
                    break
        except CallError as error:
            fault = str(error)
        if not stream.finished:
            told = stream.end(fault)
            fan.tap.counts[at] = work.usage(stream)
            await self._tell(at, stream, told)
        call.abandon()

    async def _tell(self, int at, StreamConverter stream, bytes told):
        cdef FanPool fan = self.fan
        cdef Writer writer = stream.writer
        cdef bytes made
        if stream.failed is not None and not self.begun and not writer.spoke:
            if writer.fault_kind is None:
                raise Refused(*fan.route.translation.broken(stream.failed))
            raise Refused(*fan.route.translation.failed(
                writer.fault_status, writer.fault_kind, writer.fault_code, writer.fault_message))
        made = self.merged.feed(at, told) if told else b""
        # Nothing goes out before all heads are good: an error has its status as long as nothing has.
        await asyncio.shield(self.good)
        while self.resumed is not None:
            await asyncio.shield(self.resumed)
        if stream.failed is not None:
            fan.tap.broken = stream.failed
        if made:
            if not self.begun:
                self._begin(200, EVENTS, -1)
            self._pass_on(made)
        if stream.failed is not None:
            # The error is the last that the client gets: the request lets go of all calls now.
            self._end()
            raise StreamFailed

    cdef int _begin(self, int status, bytes kind, int64_t length) except -1:
        """Hands the head of the answer on: that of the first call, with what is another's here."""
        cdef FanPool fan = self.fan
        cdef ClientCall call = self._told_by(status)
        cdef MessageHead head
        cdef ResponseSink sink = self.sink
        cdef bytes told
        self.begun = True
        if sink is None:
            return 0
        head = new_head()
        head.status = status
        for name, value in () if call is None else call.response.items():
            if name not in ("content-encoding", "content-length", "content-type"):
                head.add(name, value)
        head.add_field(b"content-type", 12, kind, len(kind))
        if length >= 0:
            told = str(length).encode()
            head.add_field(b"content-length", 14, told, len(told))
        if status == 429 and call is not None:
            for name, value in fan.route.translation.limits(call.response):
                head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        if fan.call.unsupported is not None:
            head.add_field(UNSUPPORTED, len(UNSUPPORTED), fan.call.unsupported, len(fan.call.unsupported))
        return sink.on_response_head(head)

    cdef ClientCall _told_by(self, int status):
        """The first call with a head of this status, else the first with a head; None: no call has one."""
        cdef ClientCall call, found = None
        for call in self.calls:
            if call is not None and call.response is not None:
                if call.response.status == status:
                    return call
                found = call if found is None else found
        return found

    cdef int _pass_on(self, bytes data) except -1:
        cdef ResponseSink sink = self.sink
        if sink is None:
            return 0
        sink.on_response_data(data, len(data))
        sink = self.sink
        return 0 if sink is None else sink.on_response_flush()

    cdef int _end(self) except -1:
        cdef ResponseSink sink = self.sink
        self.sink = None
        if sink is None:
            return 0
        self.fan.tap.done = True
        sink.on_response_end(None)
        return sink.on_response_flush()


cdef class FanTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        self.ctx = ctx
        self.streaming = self.events and 200 <= head.status < 300
        self.rewrites = self.streaming
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        self.ready = self.spoken = True
        if not self.streaming:
            return False
        self.fault = self.broken
        out.append(p, n)
        return True

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        self._count()
        self.ctx = None
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef bytes told
        self._count()
        if not self.streaming or self.stream_error is None:
            return False
        if self.fault is None:
            self.fault = detail
            told = self.stream_error(detail)
            out.append(told, len(told))
        return True

    cdef int left(self) except -1:
        return self._count()

    cdef int _count(self) except -1:
        """What all calls have cost until now."""
        cdef TokenUsage total = None
        cdef TokenUsage one
        cdef list parts = []
        if self.ctx is None:
            return 0
        for counted in self.counts:
            if counted is None:
                continue
            counts, model = counted
            if counts is not None:
                one = TokenUsage(*counts[:5])
                if counts[5] is not None:
                    take_parts(one, counts[5])
                parts.append(one)
                if total is None:
                    total = TokenUsage.__new__(TokenUsage)
                total.add(one)
            if model:
                self.call.response_model = model.encode("utf-8", "replace")
        if total is not None:
            self.ctx.usage = total
            # Prices that depend on the length of a prompt depend on that of each.
            self.call.usage_parts = parts
        return 0
