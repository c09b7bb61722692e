"""Turns of other vendors in a request; see foreign.pxd.

Bodies without such turns are the rule and go on as they are, so they are searched and not decoded. What is found here by
mistake (in a text, say) costs time and does no harm: the cleaning looks at members.
"""

from libc.string cimport memchr, memcmp

cdef extern from "string.h" nogil:
    void* memmem(const void* haystack, size_t n, const void* needle, size_t m)

cdef dict KINDS = {"messages": HISTORY_MESSAGES, "count_tokens": HISTORY_MESSAGES, "completions": HISTORY_COMPLETIONS,
                   "responses": HISTORY_RESPONSES, "converse": HISTORY_CONVERSE}
# Digits of an id of a reasoning item that this gateway makes.
cdef enum:
    MADE_DIGITS = 24


cdef inline bint blank(char c) noexcept nogil:
    return c == c' ' or c == c'\t' or c == c'\n' or c == c'\r'


cdef const char* text_behind(const char* at, const char* stop, Py_ssize_t* length) noexcept nogil:
    """The string that is the value of the name that ends at `at`, NULL if it is something else."""
    cdef const char* end
    while at < stop and blank(at[0]):
        at += 1
    if at >= stop or at[0] != c':':
        return NULL
    at += 1
    while at < stop and blank(at[0]):
        at += 1
    if at >= stop or at[0] != c'"':
        return NULL
    at += 1
    end = <const char*>memchr(at, c'"', stop - at)
    if end == NULL:
        return NULL
    length[0] = end - at
    return at


cdef bint is_own(const char* p, Py_ssize_t n) noexcept nogil:
    """Whether an id is of Anthropic's making."""
    cdef Py_ssize_t at
    cdef char c
    if n > 64 or n < 7 or memcmp(p, b"toolu_", 6) != 0:
        return False
    for at in range(6, n):
        c = p[at]
        if not (c'a' <= c <= c'z' or c'A' <= c <= c'Z' or c'0' <= c <= c'9' or c == c'_' or c == c'-'):
            return False
    return True


cdef bint is_made(const char* p, const char* stop) noexcept nogil:
    """Whether what follows is the rest of an id that this gateway makes for a reasoning item."""
    cdef Py_ssize_t at
    cdef char c
    if stop - p <= MADE_DIGITS or p[MADE_DIGITS] != c'_':
        return False
    for at in range(MADE_DIGITS):
        c = p[at]
        if not (c'0' <= c <= c'9' or c'a' <= c <= c'f'):
            return False
    return True


cdef inline bint stands(const char* start, const char* stop, const char* at, const char* word, Py_ssize_t n) noexcept nogil:
    """Whether a word begins at `at`."""
    return at >= start and stop - at >= n and memcmp(at, word, n) == 0


cdef bint messages_mark(const char* start, const char* stop, const char* at) noexcept nogil:
    """Whether the underscore at `at` is that of a mark in Messages."""
    cdef Py_ssize_t n = 0
    cdef const char* text
    if stands(start, stop, at - 5, b'"tool_use_id"', 13):
        text = text_behind(at + 8, stop, &n)
        return text != NULL and not is_own(text, n)
    if stands(start, stop, at - 9, b'"srvtoolu_', 10):
        return is_made(at + 1, stop)
    if stands(start, stop, at - 9, b'"headgate_', 10):
        return True
    return stands(start, stop, at - 10, b'"encrypted_index"', 17) and text_behind(at + 7, stop, &n) != NULL and n == 0


cdef bint id_is_wrong(const char* at, const char* stop, Py_ssize_t longest, bint any_id) noexcept nogil:
    """Whether the id behind a name that ends at `at` may not fit."""
    cdef Py_ssize_t n = 0
    cdef const char* text = text_behind(at, stop, &n)
    return text != NULL and (any_id or n == 0 or n > longest or memmem(text, n, b"__thought__", 11) != NULL)


cdef bint completions_mark(const char* start, const char* stop, const char* at, Py_ssize_t longest, bint strict,
                           bint any_id) noexcept nogil:
    if stands(start, stop, at - 5, b'"tool_call_id"', 14):
        return id_is_wrong(at + 9, stop, longest, any_id)
    if not strict:
        return False
    if stands(start, stop, at - 10, b'"reasoning_', 11):
        # Not the client's own `reasoning_effort`.
        return at + 1 < stop and at[1] != c'e'
    return stands(start, stop, at - 9, b'"thinking_blocks"', 17)


cdef bint responses_mark(const char* start, const char* stop, const char* at, Py_ssize_t longest) noexcept nogil:
    if stands(start, stop, at - 5, b'"call_id"', 9):
        return id_is_wrong(at + 4, stop, longest, False)
    if (stands(start, stop, at - 3, b'"rs_', 4) or stands(start, stop, at - 3, b'"ws_', 4)
            or stands(start, stop, at - 3, b'"ci_', 4) or stands(start, stop, at - 4, b'"mcp_', 5)):
        return is_made(at + 1, stop)
    return False


cdef bint converse_id_is_wrong(const char* p, Py_ssize_t n) noexcept nogil:
    """Whether an id of a tool call does not fit Bedrock's pattern."""
    cdef Py_ssize_t at
    cdef char c
    if n < 1 or n > 64 or memmem(p, n, b"__thought__", 11) != NULL:
        return True
    for at in range(n):
        c = p[at]
        if not (c'a' <= c <= c'z' or c'A' <= c <= c'Z' or c'0' <= c <= c'9' or c == c'_' or c == c'-'):
            return True
    return False


cdef bint converse_seen(const char* start, const char* stop, bint strict) noexcept nogil:
    """Whether a request of Converse has ids, or with `strict` thoughts, that the vendor does not take."""
    cdef Py_ssize_t n = 0
    cdef Py_ssize_t thoughts = 0
    cdef const char* at = start
    cdef const char* text
    # What idents.wrapped() makes begins with this.
    if memmem(start, stop - start, b'"aGVhZGdhdGU6', 13) != NULL:
        return True
    while True:
        at = <const char*>memmem(at, stop - at, b'"toolUseId"', 11)
        if at == NULL:
            break
        at += 11
        text = text_behind(at, stop, &n)
        if text != NULL and converse_id_is_wrong(text, n):
            return True
    if not strict:
        return False
    at = start
    while True:
        at = <const char*>memmem(at, stop - at, b'"reasoningText"', 15)
        if at == NULL:
            break
        at += 15
        thoughts += 1
    at = start
    while thoughts > 0:
        at = <const char*>memmem(at, stop - at, b'"signature"', 11)
        if at == NULL:
            return True
        at += 11
        text = text_behind(at, stop, &n)
        thoughts -= text != NULL and n > 0
    return False


cdef bint unsigned_seen(const char* p, const char* stop) noexcept nogil:
    """Whether a thought has no signature."""
    cdef Py_ssize_t n = 0
    while True:
        p = <const char*>memmem(p, stop - p, b'"signature"', 11)
        if p == NULL:
            return False
        p += 11
        if text_behind(p, stop, &n) == NULL or n == 0:
            return True


cdef class ForeignHistory:
    """Finds what a provider refuses of the turns of other vendors: ids of tool calls, unsigned thoughts."""

    def __init__(self, str format not None, clean not None, *, Py_ssize_t longest=64, bint strict=False,
                 bint any_id=False):
        self.kind = KINDS[format]
        self.longest = longest
        self.strict = strict
        self.any_id = any_id
        self.clean = clean

    cdef bint seen(self, bytes body) except -1:
        cdef const char* start = body
        cdef const char* stop = start + len(body)
        cdef const char* at = start
        cdef bint found = False
        if self.kind == HISTORY_CONVERSE:
            return converse_seen(start, stop, self.strict)
        # All names of marks but one have an underscore, which is rare in texts: a search for a byte is ten times as fast.
        while not found:
            at = <const char*>memchr(at, c'_', stop - at)
            if at == NULL:
                return self.kind == HISTORY_MESSAGES and unsigned_seen(start, stop)
            if self.kind == HISTORY_MESSAGES:
                found = messages_mark(start, stop, at)
            elif self.kind == HISTORY_COMPLETIONS:
                found = completions_mark(start, stop, at, self.longest, self.strict, self.any_id)
            else:
                found = responses_mark(start, stop, at, self.longest)
            at += 1
        return True

    def is_in(self, bytes body not None):
        """Whether `clean` may have something to do."""
        return bool(self.seen(body))
