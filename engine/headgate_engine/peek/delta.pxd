# Recognises events of streamed LLM replies that are nothing but a text delta. One pass over the event's JSON checks it
# and finds the text; no Python object is made. All other events have to be read by other means.

from headgate_engine.peek.scan cimport Found

cdef enum:
    DELTA_FIELDS = 16          # largest number of watched members of one format, the top value included

cdef enum DeltaFormat:
    DELTA_COMPLETIONS = 0
    DELTA_MESSAGES
    DELTA_RESPONSES
    DELTA_GEMINI
    DELTA_CONVERSE
    DELTA_FORMATS              # their number

cdef class DeltaPeek:
    cdef Found found[DELTA_FIELDS]
    cdef readonly int format             # DeltaFormat
    # Spans of the last event that plain() has recognised, in its JSON. stop 0: absent.
    cdef readonly Py_ssize_t start, stop                   # the text, quotes included
    cdef readonly Py_ssize_t index_start, index_stop       # number of the choice, the block, the item or the candidate
    cdef readonly Py_ssize_t part_start, part_stop         # content_index of responses
    cdef readonly Py_ssize_t marks_start, marks_stop       # log probabilities, which repeat the text
    cdef readonly Py_ssize_t usage_start, usage_stop       # usageMetadata of Gemini
    cdef readonly bint calls             # `tool_calls` is there and null
    # Whether the JSON is an event that says only a text delta of one choice. False also for what is no JSON, for a watched
    # member that occurs twice, and for members with other meanings than text.
    cdef bint plain(self, const char* p, Py_ssize_t n) noexcept
    cdef bint _text(self, int field) noexcept
    cdef bint _empty(self, int first, int last) noexcept

# The peek of a format by its name, None for others.
cdef DeltaPeek delta_peek(str format)
