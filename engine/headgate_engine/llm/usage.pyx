"""Token usage from answers; see usage.pxd.

A stream's events are handed on as they are. Only when the gateway itself asked the provider for usage is the event
that carries nothing else taken out, so that the client sees the stream it asked for.
"""

from libc.string cimport memchr, memcmp

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.peek.json import PeekError

cdef extern from "<string.h>" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef extern from *:
    """
    #ifndef _GNU_SOURCE
    void *memmem(const void *, size_t, const void *, size_t);
    #endif
    """


cdef class UsageTap(ResponseTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if head.status != 200:
            return False
        kind = head.get("content-type")
        if kind is None:
            return False
        kind = kind.split(";")[0].strip().lower()
        if kind == "text/event-stream":
            self.streaming = True
        elif kind != "application/json":
            return False
        coding = head.get("content-encoding")
        if coding is not None and coding.strip().lower() != "identity":
            return False
        self.rewrites = self.streaming and self.strip
        self.ctx = ctx
        self.kept = ByteBuffer()
        self.peek = UsagePeek()
        return True

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        if self.blind:
            return False
        if self.streaming:
            if self.kept.length == 0 and ends_event(p, n) and memmem(p, n, b'"usage"', 7) == NULL:
                return False
        if self.kept.length + n > KEEP_LIMIT:
            self.blind = True
            if self.rewrites:
                out.append(self.kept.data, self.kept.length)
                out.append(p, n)
            self.kept.release()
            return self.rewrites
        self.kept.append(p, n)
        if self.streaming:
            self._events(out)
        return self.rewrites

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        if self.blind or self.kept is None:
            return 0
        if self.streaming:
            if self.rewrites and self.kept.length:
                out.append(self.kept.data, self.kept.length)     # a last event without its blank line
        else:
            self._read_usage(self.kept.data, self.kept.length)
        self.kept.release()
        self.ctx = None
        return 0

    cdef int _events(self, ByteBuffer out) except -1:
        """Takes the complete events off `kept`; those that stay in the stream go to `out` when it is rewritten."""
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t end
        while True:
            end = event_end(self.kept.data, self.searched if self.searched > start else start, start, self.kept.length)
            if end < 0:
                break
            if not self._read_event(self.kept.data + start, end - start) and self.rewrites:
                out.append(self.kept.data + start, end - start)
            start = end
        if start:
            self.kept.consume(start)
        # An event's end may lie across the next piece: look again from just before the end of this one.
        self.searched = self.kept.length - 3 if self.kept.length > 3 else 0
        return 0

    cdef bint _read_event(self, const char* event, Py_ssize_t n) except -1:
        """True when the event says nothing but usage that only the gateway asked for."""
        cdef const char* line = event
        cdef const char* stop = event + n
        cdef const char* end
        if memmem(event, n, b'"usage"', 7) == NULL:
            return False
        while line < stop:
            end = <const char*>memchr(line, 10, stop - line)
            if end == NULL:
                end = stop
            if end - line > 5 and memcmp(line, b"data:", 5) == 0:
                return self._read_usage(line + 5, end - line - 5) and self.strip and self.peek.choices_empty
            line = end + 1
        return False

    cdef bint _read_usage(self, const char* text, Py_ssize_t n) except -1:
        cdef UsagePeek peek = self.peek
        cdef Usage usage
        try:
            peek.scan(text, n)
        except PeekError:
            return False         # not ours to judge: the client gets what the provider said
        if not peek.has_usage:
            return False
        usage = Usage.__new__(Usage)
        usage.input_tokens = peek.input_tokens
        usage.output_tokens = peek.output_tokens
        usage.cached_tokens = peek.cached_tokens
        usage.reasoning_tokens = peek.reasoning_tokens
        self.ctx.usage = usage
        return True


cdef bint ends_event(const char* p, Py_ssize_t n) noexcept nogil:
    return n >= 2 and p[n - 1] == 10 and (p[n - 2] == 10 or (n >= 4 and p[n - 2] == 13 and p[n - 3] == 10))


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
