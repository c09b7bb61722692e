"""Native answers; see native.pxd.

A stream's events are handed on as they are, each when it is complete: an event that is cut or is no JSON never reaches
the client as one. Exactly one terminal event does: the provider's own, ours where it forgot that, or an error in the
client's format. Only when the gateway itself asked for usage is the event that carries nothing else taken out.

Usage is read from all of it: from coded answers (wire.coding) by way of a copy, from what is too long to be kept by
its end, and from whole answers that the client does not wait for as far as they have come.
"""

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, memset

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport H_CONTENT_ENCODING, H_CONTENT_TYPE, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.modalities cimport take_gemini_parts
from headgate_engine.llm.first_words cimport (
    END_DONE, END_REASON, END_RESPONSE, END_STOP, END_UNKNOWN, shows_words)
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.peek.json cimport (
    USAGE_ANYWHERE, USAGE_AT_TOP, USAGE_IN_MESSAGE, USAGE_IN_RESPONSE, USAGE_OF_GEMINI, USAGE_OF_RERANK, UsagePeek)
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport Decoder, coding_of

from headgate_engine.peek.json import PeekError
from headgate_engine.wire.coding import CodingError

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """

ENDINGS = {"completions": END_DONE, "messages": END_STOP, "responses": END_RESPONSE, "gemini": END_REASON}
# What a provider may forget to say behind a complete answer.
FORGOTTEN = {END_DONE: b"data: [DONE]\n\n", END_STOP: b'event: message_stop\ndata: {"type":"message_stop"}\n\n'}
cdef dict PLACES = {"gemini": USAGE_OF_GEMINI, "rerank": USAGE_OF_RERANK, "detect": USAGE_ANYWHERE}
# Bytes of a coded answer that are decoded for counting, at most.
MAX_DECODED = 64 * 1024 * 1024
# Decoded at a time, and of one piece of a stream at most: a few bytes can stand for gigabytes.
DECODED_STEP = 65536
MAX_STEPS = 128
# Of one piece of a whole answer: so many bytes, and so many for each of its own. What swells more is not counted: the loop
# has others to serve.
DECODED_FREE = 2 * 1024 * 1024
DECODED_RATIO = 32
# Bytes kept of the end of what is too long: usage and what stands behind it.
TAIL = 16384
CUT = "the provider's stream ended before the answer was complete"
BROKEN = "the provider sent an event that is not JSON"
UNDECODED = "the provider's stream cannot be decoded"
SWELLS = "the provider's stream decodes to more than can be kept"


cdef NativeTap native_tap(LlmCall call, FormatRoute format_route):
    cdef NativeTap tap = NativeTap.__new__(NativeTap)
    prepare_tap(tap, call, format_route)
    return tap


cdef int prepare_tap(NativeTap tap, LlmCall call, FormatRoute format_route) except -1:
    tap.strip = (call.streaming and call.format == "completions" and not call.has_include_usage
                 and call.object_end >= 0)
    tap.ending = ENDINGS.get(call.format, END_UNKNOWN) if call.streaming and format_route.stream_error is not None else 0
    tap.stream_error = format_route.stream_error
    usage_of(tap, call.format, call.streaming)
    tap.exclusive = tap.exclusive or format_route.exclusive
    return 0


cdef int usage_of(NativeTap tap, str format, bint streaming) except -1:
    """Where usage is reported, and by which convention."""
    tap.exclusive = format == "messages"
    tap.place = USAGE_IN_RESPONSE if format == "responses" and streaming else PLACES.get(format, USAGE_AT_TOP)
    return 0


cdef class NativeTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if not 200 <= head.status < 300:
            return False
        if media_type_is(head, b"text/event-stream", 17):
            self.streaming = True
        elif self.ending != END_UNKNOWN and not media_type_is(head, b"application/json", 16):
            # A stream was asked for, and this is none of the other answers: its type is missing, or wrong.
            self.streaming = True
            head.drop_id(H_CONTENT_TYPE)
            head.add_field(b"content-type", 12, b"text/event-stream", 17)
        elif not media_type_is(head, b"application/json", 16):
            return False
        if head.find_id(H_CONTENT_ENCODING, 0) >= 0:
            coding = coding_of(head.get("content-encoding"))
            if coding == "":
                self.streaming = False
                return False
            if coding is not None:
                self.coded = True
                self.decoder = Decoder(coding)
            # A stream goes on decoded, since events may be added to it; a whole answer as it came.
            if self.streaming:
                head.drop_id(H_CONTENT_ENCODING)
        self.rewrites = self.streaming
        self.shown = self.ending == END_UNKNOWN or ctx.llm is None or not (<LlmCall>ctx.llm).kept_back
        self.ctx = ctx
        self.kept = ByteBuffer.__new__(ByteBuffer)
        self.peek = UsagePeek.__new__(UsagePeek)
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if not self.coded:
            return self._feed(p, n, out)
        if self.decoder is not None:
            self._decode(p[:n], out)
        return self.rewrites             # without a decoder it cannot be decoded, or has been enough

    cdef int _decode(self, bytes data, ByteBuffer out) except -1:
        cdef int steps = 0
        cdef Py_ssize_t most = min(MAX_DECODED, self.decoded + DECODED_FREE + DECODED_RATIO * len(data))
        try:
            self.decoder.feed(data)
            while self.fault is None:
                data = self.decoder.next(DECODED_STEP)
                if not data:
                    return 0
                self.decoded += len(data)
                self._feed(data, len(data), out)
                steps += 1
                if steps > MAX_STEPS if self.streaming else self.decoded > most:
                    break
            if self.streaming and self.fault is None:
                self._break(SWELLS, out)
        except CodingError:
            if self.streaming:
                self._break(UNDECODED, out)
        self.decoder = None
        return 0

    cdef bint _feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if self.skips:
            self._skip(p, n, out)
        elif self.kept.length + n > KEEP_LIMIT:
            self._too_long(p, n, out)
        else:
            self.kept.append(p, n)
            if self.streaming:
                self._events(out)
        return self.rewrites

    cdef int _too_long(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        """An event, or a complete answer, that is not kept: only its end is read."""
        cdef bytes start = self.kept.data[:min(self.kept.length, 64)]
        self.skips = self.ready = self.shown = True
        self.tail = bytearray()
        self.skipped = start.partition(b"\n")[0].strip()[6:].strip() if start.startswith(b"event:") else b""
        if self.streaming:
            out.append(self.kept.data, self.kept.length)
        self._keep_tail(self.kept.data, self.kept.length)
        self.kept.clear()
        self.searched = 0
        forget(&self.lines)
        return self._skip(p, n, out)

    cdef int _skip(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef Py_ssize_t before = min(<Py_ssize_t>len(self.tail), 3)
        cdef bytes joined
        cdef Py_ssize_t end
        if not self.streaming:
            return self._keep_tail(p, n)
        # The blank line that ends the event may have begun before.
        joined = bytes(self.tail[len(self.tail) - before:]) + p[:n]
        end = event_end(joined, 0, 0, len(joined))
        if end < 0:
            out.append(p, n)
            return self._keep_tail(p, n)
        end -= before
        if end < 0:
            end = 0
        out.append(p, end)
        self._keep_tail(p, end)
        self.skips = False
        self._read_tail(bytes(self.tail))
        if self.ending != END_UNKNOWN:
            self._ends(self.skipped, len(self.skipped), NULL, 0)
        if end < n:
            self._feed(p + end, n - end, out)
        return 0

    cdef int _keep_tail(self, const char* p, Py_ssize_t n) except -1:
        self.tail += p[n - TAIL:n] if n > TAIL else p[:n]
        if len(self.tail) > 2 * TAIL:
            del self.tail[:len(self.tail) - TAIL]
        return 0

    def _read_tail(self, bytes text):
        """Usage from the end of a text of which the beginning is not there, or from the beginning of one that was cut."""
        cdef bytes found = last_usage(text, b'"usageMetadata"' if self.place == USAGE_OF_GEMINI else b'"usage"')
        if found is None:
            return
        self.peek.look(USAGE_OF_GEMINI if self.place == USAGE_OF_GEMINI else USAGE_AT_TOP)
        try:
            self.peek.scan(found, len(found))
            self._read_usage()
        except PeekError:
            pass

    cdef int left(self) except -1:
        if self.kept is not None and self.ctx is not None and not self.streaming:
            self._read_tail(bytes(self.tail) if self.skips else self.kept.data[:self.kept.length])
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.kept is None:
            return 0
        if self.skips:
            self._read_tail(bytes(self.tail))
        elif not self.streaming:
            try:
                self.peek.look(self.place)
                self.peek.scan(self.kept.data, self.kept.length)
                self._read_usage()
            except PeekError:
                pass         # not ours to judge: the client gets what the provider said
        if self.streaming:
            if self.decoder is not None and not self.decoder.done and self.fault is None and not self.done:
                self._break(UNDECODED, out)         # the coding itself has no end
            if self.kept.length and self.fault is None and not self.done:
                if self.ending == END_UNKNOWN:
                    out.append(self.kept.data, self.kept.length)
                else:
                    # A last event without its blank line: whole, or cut, and then it is no JSON.
                    self.kept.append(b"\n\n", 2)
                    self._events(out)
            if self.ending != END_UNKNOWN and not self.done and self.fault is None:
                if not self.finished:
                    self._break(CUT, out)
                elif self.ending in FORGOTTEN:
                    self._put(FORGOTTEN[self.ending], out)
        self.kept.release()
        self.ctx = None
        return 0

    cdef bint fail(self, RequestContext ctx, str detail, ByteBuffer out) except -1:
        if not self.streaming or self.ending == END_UNKNOWN:
            return False
        if not self.done and self.fault is None:
            self._break(detail, out)
        return True

    def _put(self, bytes data, ByteBuffer out):
        out.append(data, len(data))

    def _break(self, str detail, ByteBuffer out):
        self.fault = detail
        # What passed before in the same read.
        self.spoken = self.ready and out.length > 0
        self._put(self.stream_error(detail), out)

    cdef int _events(self, ByteBuffer out) except -1:
        """Takes the complete events off `kept`; those that stay in the stream go to `out`. Each byte is looked at once for
        the ends of lines: what is known of the event that is not complete yet stays in `lines`.
        """
        cdef const char* base = self.kept.data
        cdef const char* found
        cdef Py_ssize_t start = 0              # of the event
        cdef Py_ssize_t at = self.lines.at     # of the line
        cdef Py_ssize_t stop
        while self.fault is None:
            found = <const char*>memchr(base + self.searched, 10, self.kept.length - self.searched)
            if found == NULL:
                self.searched = self.kept.length
                break
            stop = found - base
            self.searched = stop + 1
            if at > start and (stop == at or stop == at + 1 and base[at] == 13):
                self._event(base + start, stop + 1 - start, out)
                start = at = stop + 1
                forget(&self.lines)
                continue
            note_line(&self.lines, base + start, at - start, stop - start)
            at = stop + 1
        if start:
            self.kept.consume(start)
        self.searched -= start
        self.lines.at = at - start
        return 0

    cdef int _event(self, const char* event, Py_ssize_t n, ByteBuffer out) except -1:
        """Judges one event; it goes to `out` unless the stream has ended, it is broken, or only we asked for it."""
        cdef const char* name = NULL
        cdef const char* data = NULL
        cdef Py_ssize_t name_len = self.lines.name_len
        cdef Py_ssize_t data_len = self.lines.data_len
        cdef int lines = self.lines.count
        if self.done:
            return 0                 # nothing comes behind the end
        if lines:
            data = event + self.lines.data
        if name_len:
            name = event + self.lines.name
        if data != NULL and not self.ready:
            self.ready = True
            self._first()
        if not self.shown and data != NULL:
            self.shown = lines != 1 or shows_words(self.ending, name, name_len, data, data_len)
        if lines != 1:
            # A comment, or data over several lines, which no provider sends: passed on unread.
            return out.append(event, n)
        if data_len == 6 and memcmp(data, b"[DONE]", 6) == 0:
            if self.ending == END_DONE:
                self.done = True
            return out.append(event, n)
        self.peek.look(USAGE_IN_MESSAGE if self.exclusive and same(name, name_len, b"message_start", 13) else self.place)
        try:
            self.peek.scan(data, data_len)
        except PeekError:
            if self.ending == END_UNKNOWN:
                return out.append(event, n)
            self._break(BROKEN, out)
            return 0
        if self._read_usage() and self.strip and self.peek.choices_empty:
            return 0
        if self.ending != END_UNKNOWN:
            self._ends(name, name_len, data, data_len)
        return out.append(event, n)

    def _first(self):
        call = self.ctx.llm
        if call is not None and (<LlmCall>call).attempt is not None:
            (<LlmCall>call).attempt.first_event_ns = monotonic_ns()

    cdef int _ends(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1:
        """Reads from an event whether it ends the stream."""
        if self.ending == END_DONE:
            if self.peek.has_error:
                self.done = self.refused = True
            elif has_text(data, n, b'"finish_reason"', 15):
                self.finished = True
        elif self.ending == END_REASON:
            if self.peek.has_error:
                self.done = self.refused = True
            elif has_text(data, n, b'"finishReason"', 14) or has_text(data, n, b'"blockReason"', 13):
                self.finished = True
        elif same(name, name_len, b"error", 5):
            self.done = self.refused = True
        elif self.ending == END_STOP:
            if same(name, name_len, b"message_stop", 12):
                self.done = True
            elif same(name, name_len, b"message_delta", 13) and has_text(data, n, b'"stop_reason"', 13):
                self.finished = True
        elif name_len > 9 and memcmp(name, b"response.", 9) == 0:
            name, name_len = name + 9, name_len - 9
            if same(name, name_len, b"completed", 9) or same(name, name_len, b"incomplete", 10):
                self.done = True
            elif same(name, name_len, b"failed", 6):
                self.done = self.refused = True
        return 0

    cdef bint _read_usage(self) except -1:
        """Takes the usage of this answer or event; later events of a stream override earlier ones."""
        cdef UsagePeek peek = self.peek
        cdef TokenUsage usage
        cdef int64_t given
        if self.ctx is None:
            return peek.has_usage
        if peek.has_model and self.ctx.llm is not None and (<LlmCall>self.ctx.llm).response_model is None:
            (<LlmCall>self.ctx.llm).response_model = peek.model_bytes()
        if not peek.has_usage:
            return False
        if self.ctx.llm is not None:
            tier = peek.tier_bytes()
            if tier is not None:
                (<LlmCall>self.ctx.llm).service_tier = tier
        usage = self.ctx.usage
        if usage is None:
            usage = self.ctx.usage = TokenUsage()
        if peek.input_tokens >= 0:
            usage.provider_input_tokens = peek.input_tokens
        if peek.cached_tokens >= 0:
            usage.cached_tokens = peek.cached_tokens
        if peek.cache_write_tokens >= 0:
            usage.cache_write_tokens = peek.cache_write_tokens
        if peek.reasoning_tokens >= 0:
            usage.reasoning_tokens = peek.reasoning_tokens
        if peek.output_tokens >= 0:
            usage.output_tokens = peek.output_tokens
            if peek.of_gemini and peek.reasoning_tokens > 0:
                usage.output_tokens += peek.reasoning_tokens
        if peek.total_tokens >= 0:
            usage.provider_total_tokens = peek.total_tokens
        self._read_parts(usage)
        given = usage.provider_input_tokens
        if self.exclusive and given >= 0:
            given += max(usage.cached_tokens, 0) + max(usage.cache_write_tokens, 0)
        elif peek.of_gemini and given >= 0:
            given += max(peek.tool_prompt_tokens, 0)
        usage.input_tokens = given
        return True

    cdef int _read_parts(self, TokenUsage usage) except -1:
        """The parts of input and output, if the provider reports them."""
        cdef UsagePeek peek = self.peek
        if peek.of_gemini:
            return take_gemini_parts(usage, peek)
        if peek.input_text_tokens >= 0:
            usage.input_text_tokens = peek.input_text_tokens
        if peek.input_image_tokens >= 0:
            usage.input_image_tokens = peek.input_image_tokens
        if peek.input_audio_tokens >= 0:
            usage.input_audio_tokens = peek.input_audio_tokens
        if peek.output_text_tokens >= 0:
            usage.output_text_tokens = peek.output_text_tokens
        if peek.output_image_tokens >= 0:
            usage.output_image_tokens = peek.output_image_tokens
        if peek.output_audio_tokens >= 0:
            usage.output_audio_tokens = peek.output_audio_tokens
        return 0


cdef bytes last_usage(bytes text, bytes name):
    """`{"usage": ...}` with the last complete usage object of a part of a JSON text, None without one. A text within it
    that looks so has escaped quotes.
    """
    cdef Py_ssize_t at = text.rfind(name)
    cdef Py_ssize_t start, end
    cdef int depth
    cdef bint quoted, escaped
    while at >= 0:
        start = at + len(name)
        while start < len(text) and text[start] in b" \t\r\n:":
            start += 1
        depth = 0
        quoted = escaped = False
        if start < len(text) and text[start] == 123:
            for end in range(start, len(text)):
                c = text[end]
                if escaped:
                    escaped = False
                elif quoted:
                    escaped = c == 92
                    quoted = c != 34
                elif c == 34:
                    quoted = True
                elif c == 123:
                    depth += 1
                elif c == 125:
                    depth -= 1
                    if depth == 0:
                        return b"{" + name + b":" + text[start:end + 1] + b"}"
        at = text.rfind(name, 0, at)
    return None


def usage_text(bytes text not None, str name not None):
    return last_usage(text, f'"{name}"'.encode())


cdef bint same(const char* p, Py_ssize_t n, const char* text, Py_ssize_t length) noexcept nogil:
    return n == length and memcmp(p, text, n) == 0


cdef bint has_text(const char* data, Py_ssize_t n, const char* key, Py_ssize_t length) noexcept nogil:
    """Whether a member of that name (with its quotes) is a string somewhere in the text. In a string of the text the
    quotes would be escaped, so the name cannot be mistaken.
    """
    cdef const char* at = data
    cdef const char* stop = data + n
    while True:
        at = <const char*>memmem(at, stop - at, key, length)
        if at == NULL:
            return False
        at += length
        while at < stop and (at[0] == 32 or at[0] == 58):
            at += 1
        if at < stop and at[0] == 34:
            return True


cdef void forget(EventLines* lines) noexcept nogil:
    memset(lines, 0, sizeof(EventLines))


cdef void note_line(EventLines* lines, const char* event, Py_ssize_t at, Py_ssize_t stop) noexcept nogil:
    """Notes what a line of an event says: its data, its name, or nothing that counts here."""
    cdef const char* p = event + at
    cdef Py_ssize_t n = stop - at
    if n and p[n - 1] == 13:
        n -= 1
    if n >= 5 and memcmp(p, b"data:", 5) == 0:
        lines.count += 1
        lines.data, lines.data_len = at + 5, n - 5
        if n > 5 and p[5] == 32:
            lines.data, lines.data_len = at + 6, n - 6
    elif n >= 6 and memcmp(p, b"event:", 6) == 0:
        lines.name, lines.name_len = at + 6, n - 6
        if n > 6 and p[6] == 32:
            lines.name, lines.name_len = at + 7, n - 7


cdef Py_ssize_t event_end(const char* data, Py_ssize_t at, Py_ssize_t start, Py_ssize_t n) noexcept nogil:
    """Offset behind the blank line that ends the event, or -1. LF and CRLF; a lone CR ends no event here."""
    cdef const char* found
    while at < n:
        found = <const char*>memchr(data + at, 10, n - at)
        if found == NULL:
            return -1
        at = found - data + 1
        if at < n and data[at] == 10:
            return at + 1
        if at + 1 < n and data[at] == 13 and data[at + 1] == 10:
            return at + 2
    return -1
