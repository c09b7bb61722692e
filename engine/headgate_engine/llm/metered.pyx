# cython: boundscheck=False
"""What streams say; see metered.pxd.

Counted are the texts of the events that go to the client, in the members that have text in its format (llm.estimate): words of
the answer and of its reasoning, and arguments of tool calls. boundscheck is off: the scan stays within the bytes that came.
"""

from libc.stdint cimport int64_t
from libc.string cimport memchr, memcmp, strlen

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.estimate cimport text_tokens
from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.virtual_key cimport KeyUse
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    OF_CHUNKS = 1              # OpenAI's chat completions
    OF_TEXT = 2                # OpenAI's older completions, Google's Gemini, Amazon's Converse
    OF_BLOCKS = 3              # Anthropic's messages
    OF_DELTAS = 4              # OpenAI's responses

KINDS = {"completions": OF_CHUNKS, "text": OF_TEXT, "gemini": OF_TEXT, "converse": OF_TEXT, "messages": OF_BLOCKS,
         "responses": OF_DELTAS}
# What the client of a stream is told whose key has nothing left.
SPENT = "the limit of the api key is reached"


cdef inline bint is_name(const char* p, Py_ssize_t n, const char* name) noexcept nogil:
    return n == <Py_ssize_t>strlen(name) and memcmp(p, name, n) == 0


cdef bint has_words(int kind, const char* p, Py_ssize_t n) noexcept nogil:
    """Whether the member of a name has text."""
    if kind == OF_CHUNKS:
        return (is_name(p, n, b"content") or is_name(p, n, b"arguments") or is_name(p, n, b"reasoning_content")
                or is_name(p, n, b"reasoning") or is_name(p, n, b"refusal"))
    if kind == OF_BLOCKS:
        return is_name(p, n, b"text") or is_name(p, n, b"thinking") or is_name(p, n, b"partial_json")
    if kind == OF_DELTAS:
        return is_name(p, n, b"delta")
    return is_name(p, n, b"text") or is_name(p, n, b"input")


cdef Py_ssize_t string_end(const char* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    """Where the string ends that begins behind the quote before `at`; n: not here."""
    while at < n and p[at] != 34:
        at += 2 if p[at] == 92 else 1
    return min(at, n)


cdef int64_t generated_in(int kind, const char* p, Py_ssize_t n) noexcept nogil:
    cdef int64_t sum = 0
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t name, name_len, end
    cdef const char* found
    cdef bint words = False
    while at < n:
        found = <const char*>memchr(p + at, 34, n - at)
        if found == NULL:
            break
        name = found - p + 1
        end = string_end(p, name, n)
        name_len = end - name
        at = end + 1
        if words:
            sum += text_tokens(p + name, name_len)
            words = False
            continue
        while at < n and (p[at] == 32 or p[at] == 9):
            at += 1
        if at < n and p[at] == 58:
            at += 1
            while at < n and (p[at] == 32 or p[at] == 9):
                at += 1
            words = at < n and p[at] == 34 and has_words(kind, p + name, name_len)
    return sum


cdef ResponseTap metered_tap(ResponseTap inner, str format, KeyUse use):
    cdef MeteredTap tap
    use.generated = 0
    if inner is None or format not in KINDS:
        return inner
    tap = MeteredTap.__new__(MeteredTap)
    tap.inner, tap.use, tap.kind = inner, use, KINDS[format]
    return tap


cdef class MeteredTap(OuterTap):
    cdef bint begin(self, RequestContext ctx, MessageHead head) except -1:
        if not self.inner.begin(ctx, head):
            return False
        self.ctx = ctx
        self._mirror()
        return True

    cdef int _mirror(self) except -1:
        OuterTap._mirror(self)
        self.limit = self.inner.limit
        if self.spent:
            self.fault = SPENT           # a tap between learns late of what the innermost one was told
        return 0

    cdef bint feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        cdef bint changed = self.inner.feed(p, n, out)
        if changed:
            self._take(out, before)
        elif self.streaming:
            self.use.generated += generated_in(self.kind, p, n)
        self._mirror()
        return changed

    cdef int _take(self, ByteBuffer out, Py_ssize_t before) except -1:
        """Counts what goes to the client, and ends the stream where limits have no more."""
        cdef ResponseTap inner = self.inner
        if not self.streaming:
            return 0
        self.use.generated += generated_in(self.kind, out.data + before, out.length - before)
        if self.ctx is None or self.spent or inner.fault is not None or inner.done or inner.cut or inner.waits is not None:
            return 0
        if not self.use.covers():
            self.spent = True
            # Its format's error event is the last one.
            inner.fail(self.ctx, SPENT, out)
        return 0

    cdef int settle(self, object found, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        self.inner.settle(found, out)
        self._take(out, before)
        self._mirror()
        return 0

    cdef int finish(self, RequestContext ctx, ByteBuffer out) except -1:
        cdef Py_ssize_t before = out.length
        self.ctx = None
        self.inner.finish(ctx, out)
        self._take(out, before)
        self._mirror()
        return 0
