# Recognises events of streamed LLM replies that are nothing but one delta: of text, of a thought or of the arguments of a
# tool call. One pass over the event's JSON checks it and finds the delta; no Python object is made. All other events have
# to be read by other means.

from headgate_engine.peek.scan cimport Found

cdef enum:
    DELTA_FIELDS = 32          # largest number of watched members of one format, the top value included

cdef enum DeltaFormat:
    DELTA_COMPLETIONS = 0
    DELTA_MESSAGES
    DELTA_RESPONSES
    DELTA_GEMINI
    DELTA_CONVERSE
    DELTA_FORMATS              # their number

cdef enum Says:
    SAYS_MORE = 0              # anything else
    SAYS_TEXT
    SAYS_THOUGHT
    SAYS_ARGUMENTS             # of one tool call that was named before

cdef class DeltaPeek:
    cdef Found found[DELTA_FIELDS]
    cdef readonly int format             # DeltaFormat
    # Spans of the last event that look() has recognised, in its JSON. stop 0: absent.
    cdef readonly Py_ssize_t start, stop                   # the delta, quotes included
    cdef readonly Py_ssize_t index_start, index_stop       # number of the choice, the block, the item or the candidate
    cdef readonly Py_ssize_t part_start, part_stop         # content_index of responses
    cdef readonly Py_ssize_t marks_start, marks_stop       # log probabilities, which repeat the text
    cdef readonly Py_ssize_t usage_start, usage_stop       # usageMetadata of Gemini
    cdef readonly Py_ssize_t call_start, call_stop         # number of a tool call of completions; others tell it by `index`
    cdef readonly bint calls             # `tool_calls` is there
    # What the only delta of an event of one choice is, SAYS_MORE if it has others or none. That is also the answer for what
    # is no JSON, for a watched member that occurs twice, and for members with other meanings.
    cdef int look(self, const char* p, Py_ssize_t n) noexcept
    cdef int _completions(self) noexcept
    cdef int _messages(self, const char* p) noexcept
    cdef int _responses(self, const char* p) noexcept
    cdef int _gemini(self) noexcept
    cdef int _converse(self) noexcept
    cdef bint _text(self, int field) noexcept
    cdef bint _empty(self, int first, int last) noexcept
    cdef bint _silent(self, int field) noexcept

# The peek of a format by its name, None for others.
cdef DeltaPeek delta_peek(str format)
# The number in a span, -1 if it has other characters than one to nine digits.
cdef int small_number(const char* p, Py_ssize_t n) noexcept nogil
