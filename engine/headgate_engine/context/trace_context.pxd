# The place of a request in a trace (https://www.w3.org/TR/trace-context/). Ids are text, as they go into fields and lines.

from headgate_engine.context.headers cimport MessageHead

cdef enum:
    TRACE_ID = 32             # characters
    SPAN_ID = 16
    TRACEPARENT = 55

cdef class TraceContext:
    cdef char[TRACE_ID] trace_id
    cdef char[SPAN_ID] span_id        # of the gateway's own span of the request
    cdef char[SPAN_ID] parent_id      # of the client's span, if there is one
    cdef bint has_parent              # the client has sent a usable traceparent
    cdef bint client_sampled          # the client says that it records its span
    cdef bint sampled                 # this gateway records spans of the request
    # Reads the client's traceparent; without a usable one a new trace begins, and its tracestate is dropped.
    cdef int begin(self, MessageHead head) except -1
    # Makes `span_id` the parent of what is sent on with the head.
    cdef int put(self, MessageHead head, const char* span_id) except -1

# Writes 16 lower-case hexadecimal digits of a random number that is not 0.
cdef void random_hex(char* out) noexcept nogil
# Writes a random UUID of version 4 (RFC 9562 section 5.4): 36 characters.
cdef void random_uuid(char* out) noexcept nogil
