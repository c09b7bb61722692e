"""Translated answers; see translated.pxd.

The work itself is done by an object of the Python side, for whole bodies and for events; this one carries bytes, bounds
what is kept, and sees to it that the head fits what follows.
"""

import logging

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_LENGTH, H_CONTENT_TYPE, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport Reply, RequestContext, TokenUsage
from headgate_engine.llm.answer_body cimport answer_body, too_long
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.modalities cimport take_parts
from headgate_engine.llm.target cimport FormatRoute, LlmTarget
from headgate_engine.llm.translate.converter cimport StreamConverter
from headgate_engine.llm.translate.writers cimport Writer
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport Decoder, coding_of, decoded

from headgate_engine.context.request import log_extra
from headgate_engine.llm.answer_body import TOO_LARGE
from headgate_engine.wire.coding import CodingError, DecodedTooLong

logger = logging.getLogger("headgate.llm")

cdef tuple JSON_HEAD = ((b"content-type", b"application/json"),)
# Decoded at a time, and of one piece of a stream at most.
DECODED_STEP = 65536
MAX_STEPS = 128
# Of a whole answer whose client has left: 2 MiB.
LEFT_STEPS = 32
# Response header with the names of what the provider's format could not say of a request.
cdef bytes UNSUPPORTED = b"x-gw-unsupported-parameters"
# Where the vendors' clients look for the id of a request, by format; Google's have none.
cdef dict ID_FIELDS = {
    "completions": b"x-request-id", "responses": b"x-request-id", "text": b"x-request-id", "embeddings": b"x-request-id",
    "messages": b"request-id", "count_tokens": b"request-id", "converse": b"x-amzn-requestid",
}
cdef tuple IDS = (b"x-request-id", b"request-id", b"x-amzn-requestid")
# headgate.dialect.llm.sayable.ANSWER
cdef str ANSWER = "answer"


cdef TranslatedTap translated_tap(LlmCall call, FormatRoute format_route):
    cdef TranslatedTap tap = TranslatedTap.__new__(TranslatedTap)
    tap.work = format_route.translation
    tap.call = call
    tap.limit = (<LlmTarget>call.target).max_answer
    return tap


cdef int _put_id(LlmCall call, RequestContext ctx, MessageHead head) except -1:
    """Tells the provider's id of the request, else the gateway's, where clients of the format look for it."""
    cdef bytes field = ID_FIELDS.get(call.format)
    cdef bytes name, found = ctx.request_id
    cdef int at
    if field is None or head.find(field, len(field), 0) >= 0:
        return 0
    for name in IDS:
        at = head.find(name, len(name), 0)
        if at >= 0:
            found = head.data[head.spans[at].value_off:head.spans[at].value_off + head.spans[at].value_len]
            break
    return 0 if found is None else head.add_field(field, len(field), found, len(found))


cdef class TranslatedTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        # Of an answer that was to be a stream only one that calls itself JSON is none: types are missing, or wrong.
        cdef int64_t length = head.content_length
        cdef bint events = (media_type_is(head, b"text/event-stream", 17)
                            or media_type_is(head, b"application/vnd.amazon.eventstream", 34)
                            or self.call.streaming and not media_type_is(head, b"application/json", 16))
        coding = head.get("content-encoding") if head.find_id(H_CONTENT_ENCODING, 0) >= 0 else None
        self.ctx = ctx
        self.head = head
        self.coding = coding_of(coding)
        self.rewrites = True
        head.drop_id(H_CONTENT_ENCODING)
        head.drop_id(H_CONTENT_TYPE)
        head.drop_id(H_CONTENT_LENGTH)
        if head.status == 429:
            for name, value in self.work.limits(head):
                head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        _put_id(self.call, ctx, head)
        if self.call.unsupported is not None:
            head.add_field(UNSUPPORTED, len(UNSUPPORTED), self.call.unsupported, len(self.call.unsupported))
        if 200 <= head.status < 300 and events:
            self.streaming = True
            self.stream = self.work.stream(self.call.translation_state, head)
            self._type_events(head)
            if self.coding == "":
                self.fault = f"the provider's stream is encoded: {coding}"
            elif self.coding is not None:
                self.decoder = Decoder(self.coding)
        else:
            self.whole = True
            self.kept = answer_body(self.limit)
            self.fault = too_long(length, self.limit)
            head.add_field(b"content-type", 12, b"application/json", 16)
        return True

    cdef int _type_events(self, MessageHead head) except -1:
        """Names the type of the client's stream."""
        if self.call.format == "converse":
            return head.add_field(b"content-type", 12, b"application/vnd.amazon.eventstream", 34)
        return head.add_field(b"content-type", 12, b"text/event-stream", 17)

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if self.whole:
            if self.fault is None:
                self.fault = self.kept.keep(p, n)
            return True
        if self.decoder is None:
            self._tell(p, n, out)
        else:
            self._decode(p[:n], out)
        return True

    cdef int _decode(self, bytes data, ByteBuffer out) except -1:
        cdef int steps = 0
        try:
            self.decoder.feed(data)
            while not self.done and self.fault is None:
                data = self.decoder.next(DECODED_STEP)
                if not data:
                    break
                steps += 1
                if steps > MAX_STEPS:
                    self.fail(self.ctx, "the provider's stream decodes to more than can be kept", out)
                    break
                self._tell(data, len(data), out)
        except CodingError:
            self.fail(self.ctx, "the provider's stream cannot be decoded", out)
        return 0

    cdef int _tell(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        """Translates what came of a stream."""
        cdef Py_ssize_t before = out.length
        if self.done or self.fault is not None:
            return 0
        try:
            self.stream.feed_into(p, n, out)
        except Exception as error:  # task boundary: this stream ends with its format's error event
            logger.exception("a stream cannot be translated", extra=log_extra(self.ctx))
            self.fail(self.ctx, f"the provider's stream cannot be translated: {type(error).__name__}", out)
            return 0
        if out.length > before:
            self._begun()
        self.spoken = self.shown = self.stream.writer.spoke
        if self.stream.reader.failed:
            self.fault = self.stream.failed
        elif self.stream.writer.finished:
            self.done = True
        return 0

    cdef int _begun(self) except -1:
        """Notes that the client receives output."""
        if not self.ready:
            self.ready = True
            if self.call.attempt is not None:
                self.call.attempt.first_event_ns = monotonic_ns()
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef bytes body
        cdef Py_ssize_t before = out.length
        if self.whole:
            body = self.kept.take()
            if self._is_long(body):
                self.body = body
                self.waits = self.work.beside(self._whole, body)
                return 0
            self._answer(self._whole(body), out)
        elif self.fault is None:
            self.stream.end_into(None, out)
            if out.length > before:
                self._begun()
            self.spoken = self.stream.writer.spoke
            self.fault = self.stream.failed
            if self.stream.writer.untold:
                self._untold()
        self._usage()
        self.ctx = None
        return 0

    cdef bint _is_long(self, bytes body) except -1:
        """Whether the loop would be held by its translation; what is encoded may become much longer."""
        return len(body) > <Py_ssize_t>self.work.long_bytes // (1 if self.coding is None else 8)

    cdef int settle(self, object found, ByteBuffer out) except -1:
        self.waits = self.body = None
        self._answer(found, out)
        self.ctx = None
        return 0

    cdef int _untold(self) except -1:
        """Counts what an answer says and the client's format has no place for; a head that has not gone tells it."""
        self.call.dropped = (*(self.call.dropped or ()), ANSWER)
        if self.whole and self.work.unsupported == "warn":
            self.head.add_field(UNSUPPORTED, len(UNSUPPORTED), b"answer", 6)
        return 0

    cdef int _answer(self, tuple found, ByteBuffer out) except -1:
        cdef bytes told
        status, told, usage, model = found
        self._count(usage, model)
        if status == 200 and self.call.translation_state.untold:
            self._untold()
        self.head.status = status
        if status >= 400:
            for name, value in self.work.error_fields(status):
                self.head.drop_field(<bytes>name, len(<bytes>name))
                self.head.add_field(<bytes>name, len(<bytes>name), <bytes>value, len(<bytes>value))
        out.append(told, len(told))
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        if not self.streaming:
            return False
        if not self.done and self.fault is None:
            self.fault = detail
            self.stream.end_into(detail, out)
        self._usage()
        return True

    cdef Reply refusal(self, RequestContext ctx):
        status, body = self._refused(self.stream, self.fault)
        return Reply(status, body, (*JSON_HEAD, *self.work.error_fields(status)), "UpstreamFailure")

    cdef int left(self) except -1:
        self._usage()
        if self.body is not None and self.ctx is not None and 200 <= self.head.status < 300:
            # The answer is whole and costs what it costs, though nobody waits for its translation any more.
            self._count(*self.work.counts(self._end_of(self.body)))
            self.body = None
        return 0

    cdef bytes _end_of(self, bytes body):
        """The end of an answer, where usage stands; of one that would take long to decode, what is there."""
        cdef bytes before = b"", last = b""
        cdef Decoder decoder
        if self.coding is None or not self.coding:
            return body
        decoder = Decoder(self.coding)
        try:
            decoder.feed(body)
            for _ in range(LEFT_STEPS):
                body = decoder.next(DECODED_STEP)
                if not body:
                    break
                before, last = last, body
        except CodingError:
            pass
        return before + last

    def _whole(self, bytes body not None):
        """(status, body, counts, model) for the client; a long body's is made in a thread beside the loop."""
        if self.coding is not None:
            try:
                body = decoded(self.coding, body, self.limit) if self.coding else None
            except DecodedTooLong:
                return (*self.work.broken(TOO_LARGE), None, None)
            except CodingError:
                body = None
            if body is None:
                coding = self.coding or "unknown coding"
                return (*self.work.broken(f"the provider's answer cannot be decoded: {coding}"), None, None)
        if not 200 <= self.head.status < 300:
            return (*self._error(body), None, None)
        if self.call.streaming and is_events(body):
            return self._late_stream(body)
        try:
            return self.work.reply(body, self.call.translation_state, self.head)
        except Exception as error:  # task boundary: the client is told that the answer is broken
            logger.exception("an answer cannot be translated", extra=log_extra(self.ctx))
            return (*self.work.broken(f"the answer cannot be translated: {type(error).__name__}"), None, None)

    def _error(self, bytes body not None):
        """(status, body) of an error. A retry time that only the body has is also put into the head."""
        cdef int wait = 0
        cdef bytes told
        if self.head.status == 429:
            wait = self.work.wait(self.head, body)
            if wait and self.head.find(b"retry-after", 11, 0) < 0:
                told = str(wait).encode()
                self.head.add_field(b"retry-after", 11, told, len(told))
        return self.work.error(self.head.status, body, self.call.translation_state, wait)

    def _late_stream(self, bytes body not None):
        """What _whole() returns, for a stream that its provider labels as JSON: it is passed on when it has ended."""
        cdef ByteBuffer out = ByteBuffer()
        cdef StreamConverter stream = self.work.stream(self.call.translation_state, self.head)
        stream.feed_into(body, len(body), out)
        stream.end_into(None, out)
        if stream.failed is not None and not stream.writer.spoke:
            return (*self._refused(stream, stream.failed), *self.work.usage(stream))
        self.head.drop_id(H_CONTENT_TYPE)
        self._type_events(self.head)
        return (200, out.take(), *self.work.usage(stream))

    def _refused(self, StreamConverter stream, str fault):
        """(status, body) for a stream that said nothing."""
        cdef Writer writer = None if stream is None else stream.writer
        if writer is None or writer.fault_kind is None:
            return self.work.broken(fault)
        # The provider has said it: with the status that it would have had as a whole answer.
        return self.work.failed(writer.fault_status, writer.fault_kind, writer.fault_code, writer.fault_message)

    def _usage(self):
        if self.stream is not None and self.ctx is not None:
            self._count(*self.work.usage(self.stream))

    def _count(self, usage, model):
        if usage is not None and self.ctx is not None:
            self.ctx.usage = TokenUsage(*usage[:5])
            if usage[5] is not None:
                take_parts(self.ctx.usage, usage[5])
        if model:
            self.call.response_model = model.encode("utf-8", "replace")


cdef bint is_events(bytes body) except -1:
    """Whether a body begins as a stream of server-sent events does, behind a byte order mark too: JSON cannot."""
    cdef bytes start = body[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return start.startswith((b"data:", b"event:", b"id:", b":", b"retry:"))
