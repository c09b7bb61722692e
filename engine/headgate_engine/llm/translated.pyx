"""Translated answers; see translated.pxd.

The work itself is done by an object of the Python side, for whole bodies and for events; this one carries bytes, bounds
what is kept, and sees to it that the head fits what follows.
"""

import logging
import zlib

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_LENGTH, H_CONTENT_TYPE, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.link.timers cimport monotonic_ns
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport LlmLane, LlmTarget
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

logger = logging.getLogger("headgate.llm")

MAX_DECODED = 8 * 1024 * 1024
TOO_LARGE = "the provider's answer is larger than the buffer"


cdef TranslatedTap translated_tap(LlmCall call, LlmLane lane):
    cdef TranslatedTap tap = TranslatedTap.__new__(TranslatedTap)
    tap.work = lane.translation
    tap.call = call
    tap.limit = (<LlmTarget>call.target).plan.max_body
    return tap


cdef class TranslatedTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        cdef bint events = (media_type_is(head, b"text/event-stream", 17)
                            or media_type_is(head, b"application/vnd.amazon.eventstream", 34))
        self.ctx = ctx
        self.head = head
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            coding = head.get("content-encoding").strip().lower()
            self.coding = None if coding in ("", "identity") else coding
        self.rewrites = True
        head.drop_id(H_CONTENT_ENCODING)
        head.drop_id(H_CONTENT_TYPE)
        head.drop_id(H_CONTENT_LENGTH)
        if 200 <= head.status < 300 and events:
            self.streaming = True
            self.stream = self.work.stream(self.call.asked, head)
            head.add_field(b"content-type", 12, b"text/event-stream", 17)
            if self.coding is not None:
                self.fault = f"the provider's stream is encoded: {self.coding}"
        else:
            self.whole = True
            self.kept = ByteBuffer()
            head.add_field(b"content-type", 12, b"application/json", 16)
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef bytes told
        if self.whole:
            if self.kept.length + n > self.limit:
                self.fault = TOO_LARGE
            else:
                self.kept.append(p, n)
            return True
        if self.done or self.fault is not None:
            return True
        try:
            told = self.stream.feed(p[:n])
        except Exception as error:
            logger.exception("a stream cannot be translated")
            self.fail(self.ctx, f"the provider's stream cannot be translated: {type(error).__name__}", out)
            return True
        if told:
            self._put(told, out)
        if self.stream.failed is not None:
            self.fault = self.stream.failed
        elif self.stream.finished:
            self.done = True
        return True

    cdef int _put(self, bytes data, ByteBuffer out) except -1:
        if not self.ready:
            self.ready = True
            if self.call.attempt is not None:
                self.call.attempt.first_event_ns = monotonic_ns()
        return out.append(data, len(data))

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef bytes told
        if self.whole:
            status, told = self._whole()
            self.head.status = status
            out.append(told, len(told))
        elif self.fault is None:
            told = self.stream.end(None)
            if told:
                self._put(told, out)
            self.fault = self.stream.failed
        self._usage()
        self.ctx = None
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        cdef bytes told
        if not self.streaming:
            return False
        if not self.done and self.fault is None:
            self.fault = detail
            told = self.stream.end(detail)
            if told:
                out.append(told, len(told))
        self._usage()
        return True

    cdef int left(self) except -1:
        self._usage()
        return 0

    def _whole(self):
        """(status, body) for the client."""
        body = self.kept.take()
        if self.coding is not None:
            decoder = zlib.decompressobj(wbits=47)        # gzip or zlib, told by the bytes
            try:
                body = decoder.decompress(body, MAX_DECODED)
            except zlib.error:
                body = None
            if body is None or decoder.unconsumed_tail or self.coding not in ("gzip", "deflate"):
                return self.work.broken(f"the provider's answer cannot be decoded: {self.coding}")
        if not 200 <= self.head.status < 300:
            return self.work.error(self.head.status, body, self.call.asked)
        try:
            status, told, usage, model = self.work.reply(body, self.call.asked, self.head)
        except Exception as error:
            logger.exception("an answer cannot be translated")
            return self.work.broken(f"the answer cannot be translated: {type(error).__name__}")
        self._count(usage, model)
        return status, told

    def _usage(self):
        if self.stream is not None and self.ctx is not None:
            self._count(*self.work.usage(self.stream))

    def _count(self, usage, model):
        if usage is not None and self.ctx is not None:
            self.ctx.usage = Usage(*usage)
        if model:
            self.call.response_model = model.encode("utf-8", "replace")
