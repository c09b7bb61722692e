# Streams of requests with a virtual key: what they have said so far is counted, for those whose provider does not come to
# tell it, and more is reserved of limits when they say more than was reserved.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.outer_tap cimport OuterTap
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.steps.virtual_key cimport KeyUse
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class MeteredTap(OuterTap):
    cdef KeyUse use
    cdef RequestContext ctx
    cdef int kind                        # which names of members have text
    cdef bint spent                      # limits have no more for the stream
    cdef int _take(self, ByteBuffer out, Py_ssize_t before) except -1

# About how many tokens of output events of a stream have; kind: that of its format.
cdef int64_t generated_in(int kind, const char* p, Py_ssize_t n) noexcept nogil
# The tap around the one that makes the answer, which is a stream.
cdef ResponseTap metered_tap(ResponseTap inner, str format, KeyUse use)
