# Reads token usage out of a provider's answer on its way to the client, whole or streamed.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

cdef enum:
    # Longest answer or event kept for reading; what is longer passes unread.
    KEEP_LIMIT = 2097152

cdef class UsageTap(ResponseTap):
    cdef bint strip  # we asked for the usage event, the client did not: it is taken out again
    cdef bint streaming, blind
    cdef ByteBuffer kept     # whole answer, or the event that is not complete yet
    cdef Py_ssize_t searched  # how far kept was looked through for an event's end
    cdef UsagePeek peek
    cdef RequestContext ctx
    cdef int _events(self, ByteBuffer out) except -1
    cdef bint _read_event(self, const char* event, Py_ssize_t n) except -1
    cdef bint _read_usage(self, const char* text, Py_ssize_t n) except -1
