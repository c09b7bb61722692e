# cython: boundscheck=False
"""Text deltas of streamed LLM replies; see delta.pxd.

boundscheck is off: members are indexed by constants below DELTA_FIELDS, and all spans come from the scan of the same text.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memset

from headgate_engine.peek.json cimport DEFAULT_DEPTH
from headgate_engine.peek.scan cimport (
    J_FALSE, J_NONE, J_NULL, J_NUMBER, J_OBJECT, J_STRING, Field, Found, Scan, scan_text)

cdef tuple NAMES = ("completions", "messages", "responses", "gemini", "converse")

# Watched members: index -> path. An object precedes its members; "" stands for the items of an array.
cdef enum:
    C_CHOICES = 1
    C_CHOICE
    C_INDEX
    C_DELTA
    C_LOGPROBS
    C_CONTENT
    C_TOOL_CALLS               # from here on: must be null or absent
    C_ALL = C_TOOL_CALLS + 8
    B_TYPE = 1                 # of messages
    B_INDEX
    B_DELTA
    B_DELTA_TYPE
    B_TEXT
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
    V_ALL

cdef tuple CHOICE = ("choices", "")
cdef tuple CANDIDATE = ("candidates", "")
cdef tuple PART = (*CANDIDATE, "content", "parts", "")
cdef tuple TABLES = (
    (("choices",), CHOICE, (*CHOICE, "index"), (*CHOICE, "delta"), (*CHOICE, "logprobs"), (*CHOICE, "delta", "content"),
     (*CHOICE, "delta", "tool_calls"), (*CHOICE, "delta", "refusal"), (*CHOICE, "delta", "reasoning"),
     (*CHOICE, "delta", "reasoning_content"), (*CHOICE, "delta", "reasoning_signature"), (*CHOICE, "finish_reason"),
     ("usage",), ("error",)),
    (("type",), ("index",), ("delta",), ("delta", "type"), ("delta", "text")),
    (("type",), ("output_index",), ("content_index",), ("delta",), ("logprobs",)),
    (("candidates",), CANDIDATE, (*CANDIDATE, "index"), (*CANDIDATE, "content"), PART[:4], PART, (*PART, "text"),
     (*PART, "thought"), (*PART, "functionCall"), (*CANDIDATE, "logprobsResult"), ("usageMetadata",),
     (*CANDIDATE, "finishReason"), ("error",)),
    (("contentBlockIndex",), ("delta",), ("delta", "text")),
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

    cdef bint plain(self, const char* p, Py_ssize_t n) noexcept:
        cdef Scan s
        cdef Found* found = self.found
        cdef int index = 0
        memset(found, 0, sizes[self.format] * sizeof(Found))
        s.text = <const uint8_t*>p
        s.length = n
        s.fields = tables[self.format]
        s.count = sizes[self.format]
        s.max_depth = DEFAULT_DEPTH
        s.found = found
        s.duplicate = s.empty = False
        if scan_text(&s) < 0 or s.duplicate or found[0].kind != J_OBJECT:
            return False
        self.index_stop = self.part_stop = self.marks_stop = self.usage_stop = 0
        self.calls = False
        if self.format == DELTA_COMPLETIONS:
            # An array of two choices counts as a duplicate.
            if found[C_CHOICE].kind != J_OBJECT or not self._empty(C_TOOL_CALLS, C_ALL) or not self._text(C_CONTENT):
                return False
            index = C_INDEX
            self.calls = found[C_TOOL_CALLS].kind != J_NONE
            self.marks_start, self.marks_stop = found[C_LOGPROBS].start, found[C_LOGPROBS].stop
        elif self.format == DELTA_MESSAGES:
            if (not is_word(p, &found[B_TYPE], b'"content_block_delta"', 21)
                    or not is_word(p, &found[B_DELTA_TYPE], b'"text_delta"', 12) or not self._text(B_TEXT)):
                return False
            index = B_INDEX
        elif self.format == DELTA_RESPONSES:
            if not is_word(p, &found[R_TYPE], b'"response.output_text.delta"', 28) or not self._text(R_DELTA):
                return False
            index = R_OUTPUT_INDEX
            if found[R_CONTENT_INDEX].kind == J_NUMBER:
                self.part_start, self.part_stop = found[R_CONTENT_INDEX].start, found[R_CONTENT_INDEX].stop
            elif found[R_CONTENT_INDEX].kind != J_NONE:
                return False
            self.marks_start, self.marks_stop = found[R_LOGPROBS].start, found[R_LOGPROBS].stop
        elif self.format == DELTA_GEMINI:
            if (found[G_PART].kind != J_OBJECT or not self._empty(G_FINISH, G_ALL) or not self._text(G_TEXT)
                    or found[G_THOUGHT].kind != J_NONE and found[G_THOUGHT].kind != J_FALSE
                    or found[G_CALL].kind != J_NONE):
                return False
            index = G_INDEX
            self.marks_start, self.marks_stop = found[G_LOGPROBS].start, found[G_LOGPROBS].stop
            if found[G_USAGE].kind != J_NULL:
                self.usage_start, self.usage_stop = found[G_USAGE].start, found[G_USAGE].stop
        else:
            if not self._text(V_TEXT):
                return False
            index = V_INDEX
        if found[index].kind == J_NUMBER:
            self.index_start, self.index_stop = found[index].start, found[index].stop
        elif found[index].kind != J_NONE:
            return False
        return True

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

    def read(self, bytes data not None):
        return data[self.start:self.stop] if self.plain(data, len(data)) else None


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
