# cython: boundscheck=False
"""Deltas of streamed LLM replies; see delta.pxd.

boundscheck is off: members are indexed by constants below DELTA_FIELDS, and all spans come from the scan of the same text.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memset

from headgate_engine.peek.json cimport DEFAULT_DEPTH
from headgate_engine.peek.scan cimport (
    J_ARRAY, J_FALSE, J_NONE, J_NULL, J_NUMBER, J_OBJECT, J_STRING, Field, Found, Scan, scan_text)

cdef tuple WORDS = ("", "text", "thought", "arguments")
cdef tuple NAMES = ("completions", "messages", "responses", "gemini", "converse")

# Watched members: index -> path. An object precedes its members; "" stands for the items of an array.
cdef enum:
    C_CHOICES = 1
    C_CHOICE
    C_INDEX
    C_DELTA
    C_LOGPROBS
    C_CONTENT
    C_REASONING_CONTENT
    C_REASONING
    C_TOOL_CALLS
    C_CALL
    C_CALL_INDEX
    C_FUNCTION
    C_NAME
    C_ARGUMENTS
    C_SIGNATURE                # from here on: must be null or absent
    C_ALL = C_SIGNATURE + 11
    B_TYPE = 1                 # of messages
    B_INDEX
    B_DELTA
    B_DELTA_TYPE
    B_TEXT
    B_JSON
    B_THINKING
    B_ALL
    R_TYPE = 1                 # of responses
    R_OUTPUT_INDEX
    R_CONTENT_INDEX
    R_DELTA
    R_LOGPROBS
    R_ALL
    G_CANDIDATES = 1
    G_CANDIDATE
    G_INDEX
    G_CONTENT
    G_PARTS
    G_PART
    G_TEXT
    G_THOUGHT
    G_CALL
    G_LOGPROBS
    G_USAGE
    G_FINISH                   # from here on: must be null or absent
    G_ALL = G_FINISH + 2
    V_INDEX = 1                # of Converse
    V_DELTA
    V_TEXT
    V_CALL
    V_INPUT
    V_REASONING
    V_THOUGHT
    V_CITATION                 # from here on: must be null or absent
    V_ALL = V_CITATION + 3

cdef tuple CHOICE = ("choices", "")
cdef tuple DELTA = (*CHOICE, "delta")
cdef tuple CALL = (*DELTA, "tool_calls", "")
cdef tuple CANDIDATE = ("candidates", "")
cdef tuple PART = (*CANDIDATE, "content", "parts", "")
cdef tuple REASONING = ("delta", "reasoningContent")
cdef tuple TABLES = (
    (("choices",), CHOICE, (*CHOICE, "index"), DELTA, (*CHOICE, "logprobs"), (*DELTA, "content"), (*DELTA, "reasoning_content"),
     (*DELTA, "reasoning"), CALL[:4], CALL, (*CALL, "index"), (*CALL, "function"), (*CALL, "function", "name"),
     (*CALL, "function", "arguments"), (*DELTA, "reasoning_signature"), (*DELTA, "thinking_blocks"), (*DELTA, "refusal"),
     (*DELTA, "annotations"), (*DELTA, "audio"), (*DELTA, "images"), (*DELTA, "reasoning_details"), (*CALL, "extra_content"),
     (*CHOICE, "finish_reason"), ("usage",), ("error",)),
    (("type",), ("index",), ("delta",), ("delta", "type"), ("delta", "text"), ("delta", "partial_json"), ("delta", "thinking")),
    (("type",), ("output_index",), ("content_index",), ("delta",), ("logprobs",)),
    (("candidates",), CANDIDATE, (*CANDIDATE, "index"), (*CANDIDATE, "content"), PART[:4], PART, (*PART, "text"),
     (*PART, "thought"), (*PART, "functionCall"), (*CANDIDATE, "logprobsResult"), ("usageMetadata",),
     (*CANDIDATE, "finishReason"), ("error",)),
    (("contentBlockIndex",), ("delta",), ("delta", "text"), ("delta", "toolUse"), ("delta", "toolUse", "input"), REASONING,
     (*REASONING, "text"), ("delta", "citation"), (*REASONING, "signature"), (*REASONING, "redactedContent")),
)
cdef Field tables[DELTA_FORMATS][DELTA_FIELDS]
cdef int sizes[DELTA_FORMATS]
cdef list kept = []            # references to the strings that `tables` points at


cdef int _fill(int format, tuple table) except -1:
    """Write a table as C structs."""
    cdef Field* fields = tables[format]
    cdef bytes name
    places = {(): 0}
    for path in table:
        index = len(places)
        if index >= DELTA_FIELDS:
            raise AssertionError("a table has too many members")
        name = path[len(path) - 1].encode()
        kept.append(name)
        fields[<int>index].name = <const char*>name if name else NULL
        fields[<int>index].name_len = len(name)
        parent = places[path[:len(path) - 1]]
        fields[<int>index].parent = parent
        fields[<int>index].next = fields[<int>parent].first
        fields[<int>parent].first = index
        places[path] = index
    sizes[format] = len(places)
    return 0


cdef int _fill_all() except -1:
    cdef int format
    for format in range(DELTA_FORMATS):
        _fill(format, TABLES[format])
    if [sizes[format] for format in range(DELTA_FORMATS)] != [C_ALL, B_ALL, R_ALL, G_ALL, V_ALL]:
        raise AssertionError("the positions of members are those of their table")
    return 0


_fill_all()


cdef class DeltaPeek:
    def __init__(self, str format not None):
        if format not in NAMES:
            raise ValueError(f"no deltas of format {format!r}")
        self.format = NAMES.index(format)

    cdef int look(self, const char* p, Py_ssize_t n) noexcept:
        cdef Scan s
        cdef Found* found = self.found
        cdef int index = 0
        cdef int says
        memset(found, 0, sizes[self.format] * sizeof(Found))
        s.text = <const uint8_t*>p
        s.length = n
        s.fields = tables[self.format]
        s.count = sizes[self.format]
        s.max_depth = DEFAULT_DEPTH
        s.found = found
        s.duplicate = s.empty = False
        # An array of two choices, or of two tool calls, counts as a duplicate.
        if scan_text(&s) < 0 or s.duplicate or found[0].kind != J_OBJECT:
            return SAYS_MORE
        self.index_stop = self.part_stop = self.marks_stop = self.usage_stop = self.call_stop = 0
        self.calls = False
        if self.format == DELTA_COMPLETIONS:
            index = C_INDEX
            says = self._completions()
        elif self.format == DELTA_MESSAGES:
            index = B_INDEX
            says = self._messages(p)
        elif self.format == DELTA_RESPONSES:
            index = R_OUTPUT_INDEX
            says = self._responses(p)
        elif self.format == DELTA_GEMINI:
            index = G_INDEX
            says = self._gemini()
        else:
            index = V_INDEX
            says = self._converse()
        if found[index].kind == J_NUMBER:
            self.index_start, self.index_stop = found[index].start, found[index].stop
        elif found[index].kind != J_NONE:
            return SAYS_MORE
        return says

    cdef int _completions(self) noexcept:
        cdef Found* found = self.found
        if found[C_CHOICE].kind != J_OBJECT or not self._empty(C_SIGNATURE, C_ALL):
            return SAYS_MORE
        self.calls = found[C_TOOL_CALLS].kind != J_NONE
        self.marks_start, self.marks_stop = found[C_LOGPROBS].start, found[C_LOGPROBS].stop
        if found[C_TOOL_CALLS].kind == J_ARRAY:
            # Only the first event of a call names it.
            if (found[C_CALL].kind != J_OBJECT or found[C_FUNCTION].kind != J_OBJECT or not self._silent(C_NAME)
                    or not self._silent(C_CONTENT) or not self._silent(C_REASONING_CONTENT) or not self._silent(C_REASONING)
                    or not self._text(C_ARGUMENTS)):
                return SAYS_MORE
            if found[C_CALL_INDEX].kind == J_NUMBER:
                self.call_start, self.call_stop = found[C_CALL_INDEX].start, found[C_CALL_INDEX].stop
            return SAYS_ARGUMENTS
        if self.calls and found[C_TOOL_CALLS].kind != J_NULL:
            return SAYS_MORE
        if not self._silent(C_REASONING_CONTENT):
            return SAYS_THOUGHT if self._silent(C_CONTENT) and self._text(C_REASONING_CONTENT) else SAYS_MORE
        if not self._silent(C_REASONING):
            return SAYS_THOUGHT if self._silent(C_CONTENT) and self._text(C_REASONING) else SAYS_MORE
        return SAYS_TEXT if self._text(C_CONTENT) else SAYS_MORE

    cdef int _messages(self, const char* p) noexcept:
        cdef Found* kind = &self.found[B_DELTA_TYPE]
        if not is_word(p, &self.found[B_TYPE], b'"content_block_delta"', 21):
            return SAYS_MORE
        if is_word(p, kind, b'"text_delta"', 12):
            return SAYS_TEXT if self._text(B_TEXT) else SAYS_MORE
        if is_word(p, kind, b'"input_json_delta"', 18):
            return SAYS_ARGUMENTS if self._text(B_JSON) else SAYS_MORE
        return SAYS_THOUGHT if is_word(p, kind, b'"thinking_delta"', 16) and self._text(B_THINKING) else SAYS_MORE

    cdef int _responses(self, const char* p) noexcept:
        cdef Found* found = self.found
        cdef Found* kind = &found[R_TYPE]
        if not self._text(R_DELTA):
            return SAYS_MORE
        if found[R_CONTENT_INDEX].kind == J_NUMBER:
            self.part_start, self.part_stop = found[R_CONTENT_INDEX].start, found[R_CONTENT_INDEX].stop
        elif found[R_CONTENT_INDEX].kind != J_NONE:
            return SAYS_MORE
        self.marks_start, self.marks_stop = found[R_LOGPROBS].start, found[R_LOGPROBS].stop
        if is_word(p, kind, b'"response.output_text.delta"', 28):
            return SAYS_TEXT
        if is_word(p, kind, b'"response.function_call_arguments.delta"', 40):
            return SAYS_ARGUMENTS
        if (is_word(p, kind, b'"response.reasoning_summary_text.delta"', 39)
                or is_word(p, kind, b'"response.reasoning_text.delta"', 31)):
            return SAYS_THOUGHT
        return SAYS_MORE

    cdef int _gemini(self) noexcept:
        cdef Found* found = self.found
        if (found[G_PART].kind != J_OBJECT or not self._empty(G_FINISH, G_ALL) or not self._text(G_TEXT)
                or found[G_THOUGHT].kind != J_NONE and found[G_THOUGHT].kind != J_FALSE
                or found[G_CALL].kind != J_NONE):
            return SAYS_MORE
        self.marks_start, self.marks_stop = found[G_LOGPROBS].start, found[G_LOGPROBS].stop
        if found[G_USAGE].kind != J_NULL:
            self.usage_start, self.usage_stop = found[G_USAGE].start, found[G_USAGE].stop
        return SAYS_TEXT

    cdef int _converse(self) noexcept:
        cdef Found* found = self.found
        if found[V_TEXT].kind != J_NONE:
            return SAYS_TEXT if self._text(V_TEXT) else SAYS_MORE
        if found[V_CALL].kind == J_OBJECT:
            return SAYS_ARGUMENTS if self._text(V_INPUT) else SAYS_MORE
        if found[V_CALL].kind == J_NONE and self._empty(V_CITATION, V_ALL) and self._text(V_THOUGHT):
            return SAYS_THOUGHT
        return SAYS_MORE

    cdef bint _text(self, int field) noexcept:
        """Take a member that must be a string."""
        self.start, self.stop = self.found[field].start, self.found[field].stop
        return self.found[field].kind == J_STRING

    cdef bint _empty(self, int first, int last) noexcept:
        """Return whether none of these members says anything."""
        cdef int i
        for i in range(first, last):
            if self.found[i].kind != J_NONE and self.found[i].kind != J_NULL:
                return False
        return True

    cdef bint _silent(self, int field) noexcept:
        """Return whether a member is absent, null or an empty string."""
        cdef Found* found = &self.found[field]
        return found.kind == J_NONE or found.kind == J_NULL or found.kind == J_STRING and found.stop - found.start == 2

    def read(self, bytes data not None):
        cdef int says = self.look(data, len(data))
        return None if says == SAYS_MORE else (WORDS[says], data[self.start:self.stop])


cdef bint is_word(const char* p, const Found* found, const char* word, Py_ssize_t n) noexcept:
    """Return whether a value is this JSON string, written without escapes."""
    return found.kind == J_STRING and found.stop - found.start == n and memcmp(p + found.start, word, n) == 0


cdef DeltaPeek delta_peek(str format):
    cdef DeltaPeek peek
    if format not in NAMES:
        return None
    peek = DeltaPeek.__new__(DeltaPeek)
    peek.format = NAMES.index(format)
    return peek


cdef int small_number(const char* p, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t at
    cdef int value = 0
    if not 0 < n < 10:
        return -1
    for at in range(n):
        if not 48 <= p[at] <= 57:
            return -1
        value = value * 10 + p[at] - 48
    return value
