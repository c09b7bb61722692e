"""Answers that expressions ask about; see capture_tap.pxd. What cannot be read is left out; the answer itself passes."""

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.answer_body cimport answer_body
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.eventstream cimport FRAME_EVENT, EventStreamDecoder
from headgate_engine.llm.content_capture cimport CapturedAnswer, CaptureOptions, count_of
from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.sse.decode cimport SseDecoder
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport Decoder, coding_of

from headgate_engine.llm.eventstream import EventStreamError
from headgate_engine.sse.decode import SseError
from headgate_engine.wire.coding import CodingError

COUNTING = frozenset(("count_tokens", "gemini_count_tokens"))
# Formats that say nothing in words.
SILENT = frozenset(("embeddings", "rerank", "realtime"))
DECODERS = {"text/event-stream": SseDecoder, "application/vnd.amazon.eventstream": EventStreamDecoder}
STEP = 65536


cdef ResponseTap capture_tap(LlmCall call, ResponseTap inner, Py_ssize_t limit):
    cdef CaptureTap tap
    cdef bint counts
    if inner is None or call is None or call.wanted is None or call.format in SILENT:
        return inner
    counts = call.format in COUNTING
    if not ((<CaptureOptions>call.wanted).count if counts else (<CaptureOptions>call.wanted).answer):
        return inner
    tap = CaptureTap.__new__(CaptureTap)
    tap.inner, tap.call, tap.limit, tap.counts = inner, call, limit, counts
    return tap


cdef class CaptureTap(OuterTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if not self.inner.begin(ctx, head):
            return False
        self._mirror()
        if not 200 <= head.status < 300:
            return True
        self.head = head
        coding = coding_of(head.get("content-encoding"))
        if coding == "":
            return True
        if coding is not None:
            self.coding = Decoder(coding)
        if self.streaming:
            kind = (head.get("content-type") or "").split(";")[0].strip().lower()
            self.decoder = DECODERS[kind]() if kind in DECODERS else None
        self.kept = answer_body(self.limit)
        self.answer = CapturedAnswer(self.call.format)
        if not self.counts:
            self.call.answer = self.answer
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        cdef bint changed = self.inner.feed(p, n, out)
        self._mirror()
        if changed:
            self._take(out.data + before, out.length - before)
        else:
            self._take(p, n)
        return changed

    cdef int settle(self, object found, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        self.inner.settle(found, out)
        self._mirror()
        self._take(out.data + before, out.length - before)
        if self.kept is not None and self.decoder is None and self.waits is None:
            self._whole()
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        self.inner.finish(ctx, out)
        self._mirror()
        self._take(out.data + before, out.length - before)
        if self.kept is not None and self.decoder is None and self.waits is None:
            self._whole()
        return 0

    # -- what is read ----------------------------------------------------------------------------------------------------
    cdef int _take(self, const char* p, Py_ssize_t n) except -1:
        cdef bytes data
        if self.answer is None or n <= 0:
            return 0
        if self.coding is None:
            return self._keep(p, n)
        try:
            self.coding.feed(p[:n])
            while self.answer is not None:
                data = self.coding.next(STEP)
                if not data:
                    break
                self._keep(data, len(data))
        except CodingError:
            self.answer = None
        return 0

    cdef int _keep(self, const char* p, Py_ssize_t n) except -1:
        if self.decoder is not None:
            try:
                return self._events(p, n)
            except (SseError, EventStreamError):
                self.answer = None
        elif self.kept.keep(p, n) is not None:
            self.answer = None           # too long to be read whole
            self.kept.release()
        return 0

    cdef int _events(self, const char* p, Py_ssize_t n) except -1:
        cdef SseDecoder events
        cdef EventStreamDecoder frames
        if type(self.decoder) is not SseDecoder:
            frames = <EventStreamDecoder>self.decoder
            frames.feed(p, n)
            while frames.next():
                if frames.kind == FRAME_EVENT:
                    name = "" if frames.event.p == NULL or frames.is_event(b"chunk", 5) else (
                        frames.event.p[:frames.event.n].decode("utf-8", "replace"))
                    self.answer.event(name, inner_event(frames.data[:frames.data_len]))
            return 0
        events = <SseDecoder>self.decoder
        events.feed(p, n)
        while events.next():
            if events.has_event:
                name = "" if events.event == NULL else events.event[:events.event_len].decode("utf-8", "replace")
                self.answer.event(name, events.data[:events.data_len])
        return 0

    def _whole(self):
        cdef bytes body = self.kept.take()
        self.kept = None
        if self.answer is None or self.reply is not None or not 200 <= self.head.status < 300:
            self.call.answer = None      # too long, refused, or not to be told in the client's format
        elif self.counts:
            self.call.counted = count_of(body)
        else:
            self.answer.whole(body)


cdef bytes inner_event(bytes payload):
    """The event of a model in a chunk of Bedrock's, or the payload itself."""
    import base64
    import json
    try:
        told = json.loads(payload)
        return base64.b64decode(told["bytes"]) if isinstance(told, dict) and "bytes" in told else payload
    except (ValueError, TypeError, RecursionError):
        return payload
