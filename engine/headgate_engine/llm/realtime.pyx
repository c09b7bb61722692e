"""Usage of realtime connections; see realtime.pxd. RFC 6455 section 5 for frames; `response.done` tells what each answer
used. A connection that negotiated compression is not read: the request is sent without its offer.
"""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.peek.json cimport USAGE_IN_RESPONSE, UsagePeek
from headgate_engine.plan.tap cimport TunnelTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint64_t

from headgate_engine.peek.json import PeekError

cdef enum:
    CONTINUED = 0
    TEXT = 1
    BINARY = 2
    CONTROL = 8

DONE = b'"response.done"'


cdef FrameTap frame_tap(RequestContext ctx, LlmCall call):
    cdef FrameTap tap
    if call is None or call.format != "realtime":
        return None
    tap = FrameTap.__new__(FrameTap)
    tap.ctx = ctx
    tap.head = ByteBuffer()
    tap.message = ByteBuffer()
    tap.peek = UsagePeek()
    return tap


cdef TokenUsage usage_of(UsagePeek peek):
    cdef TokenUsage usage = TokenUsage(peek.input_tokens, peek.output_tokens, peek.cached_tokens, peek.reasoning_tokens)
    usage.provider_total_tokens = peek.total_tokens
    usage.input_text_tokens, usage.input_image_tokens = peek.input_text_tokens, peek.input_image_tokens
    usage.input_audio_tokens, usage.output_audio_tokens = peek.input_audio_tokens, peek.output_audio_tokens
    usage.output_text_tokens, usage.output_image_tokens = peek.output_text_tokens, peek.output_image_tokens
    return usage


cdef class FrameTap(TunnelTap):
    cdef int feed(self, const char* p, Py_ssize_t n) except -1:
        cdef Py_ssize_t at = 0
        cdef Py_ssize_t some
        while at < n and not self.blind:
            if not self.inside:
                self.head.append(p + at, 1)
                at += 1
                if self._begin() < 0:
                    continue
            some = n - at if <uint64_t>(n - at) < self.left else <Py_ssize_t>self.left
            # What a control frame carries stands between the fragments of a message and is no part of it.
            if self.text and self.reads:
                if self.message.length + some <= MESSAGE_LIMIT:
                    self.message.append(p + at, some)
                else:
                    self.reads = False
            at += some
            self.left -= some
            if self.left == 0:
                self._end()
        return 0

    cdef Py_ssize_t _begin(self) except -2:
        """Reads the head of a frame; -1 until it is whole."""
        cdef const unsigned char* head = <const unsigned char*>self.head.data
        cdef Py_ssize_t size = 2
        cdef int opcode, i
        if self.head.length < 2:
            return -1
        if head[1] & 128 or head[0] & 112:
            # A server does not mask, and an extension would have to be understood.
            self.blind = True
            return -1
        if head[1] >= 126:
            size += 2 if head[1] == 126 else 8
        if self.head.length < size:
            return -1
        self.left = head[1]
        if size > 2:
            self.left = 0
            for i in range(2, <int>size):
                self.left = self.left << 8 | head[i]
        opcode = head[0] & 15
        self.final = head[0] & 128 != 0
        self.text = opcode < CONTROL
        if opcode == TEXT or opcode == BINARY:
            self.message.clear()
            self.reads = opcode == TEXT
        self.head.clear()
        self.inside = True
        if self.left == 0:
            self._end()
            return -1
        return 0

    cdef int _end(self) except -1:
        self.inside = False
        if self.text and self.final and self.reads:
            self._read()
        return 0

    cdef int _read(self) except -1:
        """Adds what an answer used to what the connection did."""
        cdef UsagePeek peek = self.peek
        cdef TokenUsage usage
        cdef LlmCall call = <LlmCall>self.ctx.llm
        if self.message.length == 0 or DONE not in self.message.data[:min(self.message.length, 4096)]:
            if call.attempt is not None and call.attempt.first_event_ns == 0:
                call.attempt.first_event_ns = monotonic_ns()
            return 0
        peek.look(USAGE_IN_RESPONSE)
        try:
            peek.scan(self.message.data, self.message.length)
        except PeekError:
            return 0
        if peek.has_model and call.response_model is None:
            call.response_model = peek.model_bytes()
        if not peek.has_usage:
            return 0
        usage = usage_of(peek)
        if self.ctx.usage is None:
            self.ctx.usage = usage
        else:
            self.ctx.usage.add(usage)
        return 0


def counted(pieces, str format="realtime"):
    """The usage that these bytes of a provider tell, for tests; None without any."""
    cdef RequestContext ctx = RequestContext.__new__(RequestContext)
    cdef LlmCall call = LlmCall.__new__(LlmCall)
    cdef FrameTap tap
    cdef bytes piece
    call.format = format
    ctx.llm = call
    tap = frame_tap(ctx, call)
    for piece in pieces:
        if tap is not None:
            tap.feed(piece, len(piece))
    return ctx.usage
