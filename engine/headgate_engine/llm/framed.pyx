"""Bedrock's own streams; see framed.pxd.

`ConverseStream` ends in `messageStop` and `metadata`, which has the usage. `InvokeModelWithResponseStream` carries the
events of the model's vendor in chunks; Amazon adds its own count, `amazon-bedrock-invocationMetrics`, to the last one.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memchr, memset

import binascii
import json

from headgate_engine.context.headers cimport H_CONTENT_ENCODING, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.eventstream cimport FRAME_EVENT, EventStreamDecoder
from headgate_engine.llm.first_words cimport frame_shows_words
from headgate_engine.llm.native cimport KEEP_LIMIT, NativeTap, last_usage, prepare_tap
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.peek.json cimport DEFAULT_DEPTH, USAGE_ANYWHERE, USAGE_IN_MESSAGE, UsagePeek
from headgate_engine.peek.scan cimport J_STRING, Field, Found, Scan, scan_text
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.llm.eventstream import EventStreamError, encode_frame
from headgate_engine.peek.json import PeekError

CUT = "the provider's stream ended before the answer was complete"
BROKEN = "the provider sent a frame that is broken or too long"
METRICS = "amazon-bedrock-invocationMetrics"
# What tells the tokens of an InvokeModel answer whose body does not.
INPUT_COUNT, OUTPUT_COUNT = "x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count"
# The member of a chunk that holds an event of the model's vendor, in base64.
cdef Field[2] chunk_fields
chunk_fields[0].first = 1
chunk_fields[1].name = b"bytes"
chunk_fields[1].name_len = 5
# Members of Usage by what METRICS and Converse's usage call them.
COUNTS = (("provider_input_tokens", "inputTokenCount", "inputTokens"),
          ("output_tokens", "outputTokenCount", "outputTokens"),
          ("cached_tokens", "cacheReadInputTokenCount", "cacheReadInputTokens"),
          ("cache_write_tokens", "cacheWriteInputTokenCount", "cacheWriteInputTokens"),
          ("provider_total_tokens", "totalTokenCount", "totalTokens"))


def stream_error(str message not None):
    """The frame that clients of the vendor raise as an error."""
    headers = {":message-type": "exception", ":exception-type": "modelStreamErrorException",
               ":content-type": "application/json"}
    return encode_frame(headers, json.dumps({"message": message}).encode())


cdef BedrockTap bedrock_tap(LlmCall call, FormatRoute format_route):
    cdef BedrockTap tap = BedrockTap.__new__(BedrockTap)
    prepare_tap(tap, call, format_route)
    tap.place = USAGE_ANYWHERE
    tap.exclusive = True
    return tap


cdef class BedrockTap(NativeTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if (not 200 <= head.status < 300 or not media_type_is(head, b"application/vnd.amazon.eventstream", 34)
                or head.find_id(H_CONTENT_ENCODING, 0) >= 0):
            return NativeTap.begin(self, ctx, head)
        # The model's stream says nothing of a stream in the request's body.
        if ctx.llm is not None:
            (<LlmCall>ctx.llm).streaming = True
            if (<LlmCall>ctx.llm).attempt is not None:
                (<LlmCall>ctx.llm).attempt.streaming = True
        self.streaming = self.rewrites = True
        self.stream_error = stream_error
        self.shown = ctx.llm is None or not (<LlmCall>ctx.llm).kept_back
        self.frames = EventStreamDecoder(KEEP_LIMIT)
        self.peek = UsagePeek()
        self.ctx = ctx
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef EventStreamDecoder frames = self.frames
        if frames is None:
            return NativeTap.feed(self, p, n, out)
        if self.fault is not None or self.refused:
            return True
        frames.feed(p, n)
        try:
            while frames.next():
                self._frame(frames)
                out.append(frames.raw, frames.raw_len)
        except EventStreamError:
            self._break(BROKEN, out)
        return True

    cdef int _frame(self, EventStreamDecoder frame) except -1:
        cdef bytes told
        if not self.begun:
            self.begun = self.ready = True
            self._first()
        if frame.kind != FRAME_EVENT:
            self.done = self.refused = True      # the provider says that it fails
        elif frame.is_event(b"messageStart", 12) or frame.is_event(b"contentBlockStart", 17):
            self.unfinished = True               # another event must come
        elif frame.is_event(b"chunk", 5):
            told = chunk_event(frame.data, frame.data_len)
            if told is None:
                self.shown = True
            else:
                self.shown = self.shown or frame_shows_words("chunk", told)
                self._model_event(told)
        else:
            self.shown = True
            if frame.is_event(b"metadata", 8):
                self._converse(frame.data[:frame.data_len])
                self.done = self.finished = True
                self.unfinished = False
            elif frame.is_event(b"messageStop", 11):
                self.unfinished = False
            elif frame.is_event(b"contentBlockDelta", 17) or frame.is_event(b"contentBlockStop", 16):
                self.unfinished = True
        return 0

    cdef int _model_event(self, bytes told) except -1:
        """An event of the model's vendor."""
        if b'"message_start"' in told:
            self.unfinished = True
            self._counted(told, USAGE_IN_MESSAGE)
        elif b'"usage"' in told:
            self._counted(told, USAGE_ANYWHERE)
            self._converse(told)
        if b'"message_stop"' in told:
            self.unfinished = False
        if METRICS.encode() not in told:
            return 0
        self.unfinished = False
        self.done = True
        try:
            self._metrics(json.loads(told)[METRICS])
        except (ValueError, TypeError, KeyError, RecursionError, AttributeError):
            pass
        return 0

    def _converse(self, bytes text):
        """Usage as Converse (and Amazon's own models) call its members, from a body or a part of one."""
        found = last_usage(text, b'"usage"')
        if found is not None and b'"inputTokens"' in found:
            try:
                self._metrics(json.loads(found)["usage"])
            except ValueError:
                pass

    def _read_tail(self, bytes text):
        NativeTap._read_tail(self, text)
        self._converse(text)

    def _metrics(self, counts):
        """Counts of Amazon override those of the vendor of the model."""
        cdef TokenUsage usage = self.ctx.usage
        if usage is None:
            usage = self.ctx.usage = TokenUsage()
        for name, *spellings in COUNTS:
            for told in spellings:
                if type(counts.get(told)) is int and counts[told] >= 0:
                    setattr(usage, name, counts[told])
        if usage.provider_input_tokens >= 0:
            usage.input_tokens = (usage.provider_input_tokens + max(usage.cached_tokens, 0)
                                  + max(usage.cache_write_tokens, 0))

    def _counted(self, bytes told, int place):
        self.peek.look(place)
        try:
            self.peek.scan(told, len(told))
            self._read_usage()
        except PeekError:
            pass

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.frames is None:
            self._from_head(ctx)
            if self.kept is not None and not self.skips:
                self._converse(self.kept.data[:self.kept.length])
            return NativeTap.finish(self, ctx, out)
        if self.fault is None and not self.refused and (self.frames.left() or self.unfinished or not self.begun):
            self._break(CUT, out)
        self.ctx = None
        return 0

    def _from_head(self, RequestContext ctx):
        """Counts in header fields; those in the body, which is read later, override them."""
        cdef MessageHead head = ctx.response
        counts = {}
        for name, field in (("inputTokenCount", INPUT_COUNT), ("outputTokenCount", OUTPUT_COUNT)):
            value = head.get(field) or ""
            if value.isascii() and value.isdigit() and len(value) < 18:
                counts[name] = int(value)
        if counts and self.ctx is not None:
            self._metrics(counts)

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        if self.frames is None:
            return NativeTap.fail(self, ctx, detail, out)
        if not self.refused and self.fault is None:
            self._break(detail, out)
        return True

    cdef int left(self) except -1:
        return NativeTap.left(self) if self.frames is None else 0


cdef bytes chunk_event(const char* p, Py_ssize_t n):
    """Return the event of the model's vendor in a chunk, None if there is none."""
    cdef Found[2] found
    cdef Scan scan
    memset(found, 0, sizeof(found))
    scan.text, scan.length = <const uint8_t*>p, n
    scan.fields, scan.count, scan.max_depth, scan.found = chunk_fields, 2, DEFAULT_DEPTH, found
    scan.duplicate = scan.empty = False
    if scan_text(&scan) < 0 or found[1].kind != J_STRING:
        return None
    try:
        if memchr(p + found[1].start, 92, found[1].stop - found[1].start) != NULL:
            return binascii.a2b_base64(json.loads(p[found[1].start:found[1].stop]))
        return binascii.a2b_base64(p[found[1].start + 1:found[1].stop - 1])
    except ValueError:
        return None
