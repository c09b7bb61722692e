# Answers in the client's own format on their way: passed on byte for byte, read for usage, and a stream's end is watched.

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.target cimport FormatRoute
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer
from headgate_engine.wire.coding cimport Decoder

cdef enum:
    # Longest answer or event kept for reading; what is longer passes unread.
    KEEP_LIMIT = 2097152

cdef struct EventLines:
    # Lines of an event, by offsets from its start. `at`: of the line that is not complete; `count`: data lines.
    Py_ssize_t at, data, data_len, name, name_len
    int count

cdef class NativeTap(ResponseTap):
    cdef bint strip           # we asked for the usage event, the client did not: it is taken out again
    cdef bint finished        # the answer is complete but for its terminal event
    cdef int ending           # Ending
    cdef object stream_error  # stream_error(message) -> bytes
    cdef ByteBuffer kept      # whole answer, or the event that is not complete yet
    cdef bint coded           # the answer has a content coding
    cdef Decoder decoder      # None: not coded, or no more of it is decoded
    cdef Py_ssize_t decoded
    cdef bint skips           # an event that is too long to be kept goes on unread
    cdef bytes skipped        # its name
    cdef bytearray tail       # the end of what is too long
    cdef Py_ssize_t searched  # how far kept was looked through for the ends of lines
    cdef EventLines lines     # what is known of the event that is not complete yet
    cdef UsagePeek peek
    cdef bint exclusive       # the provider's input tokens are without those of its cache
    cdef int place            # UsagePlace of events and answers without a name of their own
    cdef RequestContext ctx
    cdef int _events(self, ByteBuffer out) except -1
    cdef int _decode(self, bytes data, ByteBuffer out) except -1
    cdef bint _feed(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int _too_long(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int _skip(self, const char* p, Py_ssize_t n, ByteBuffer out) except -1
    cdef int _keep_tail(self, const char* p, Py_ssize_t n) except -1
    cdef int _event(self, const char* event, Py_ssize_t n, ByteBuffer out) except -1
    cdef int _ends(self, const char* name, Py_ssize_t name_len, const char* data, Py_ssize_t n) except -1
    cdef bint _read_usage(self) except -1
    cdef int _read_parts(self, TokenUsage usage) except -1

# Sets where usage is told by answers of a format, and by which convention.
cdef int usage_of(NativeTap tap, str format, bint streaming) except -1

cdef NativeTap native_tap(LlmCall call, FormatRoute format_route)
# Sets what native_tap() sets, on a tap that is one.
cdef int prepare_tap(NativeTap tap, LlmCall call, FormatRoute format_route) except -1
# `{"usage": ...}` with the last complete object of that name (with its quotes) in a part of a JSON text; None without one.
cdef bytes last_usage(bytes text, bytes name)
