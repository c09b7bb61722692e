# Where a stream comes to words. What stands in front of them (ids, roles, pings) may be withdrawn: another provider's stream
# begins in the same way.

# How streams of a format end.
cdef enum Ending:
    END_UNKNOWN = 0        # whatever comes is passed on
    END_DONE = 1           # completions: `data: [DONE]`
    END_STOP = 2           # messages: message_stop or error
    END_RESPONSE = 3       # responses: response.completed, .incomplete, .failed or error
    END_REASON = 4         # Gemini: the end of the body, behind a finish reason

# Whether an event of a stream of that format has words of the answer, or ends it. What is not known has.
cdef bint shows_words(int ending, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1
# The same for a frame of Bedrock's own streams; `data`: the vendor's event, for a chunk.
cdef bint frame_shows_words(str kind, bytes data) except -1
