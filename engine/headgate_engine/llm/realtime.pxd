# What a realtime connection says it used: the provider's WebSocket messages, read on their way to the client.

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.peek.json cimport UsagePeek
from headgate_engine.plan.tap cimport TunnelTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport uint64_t

cdef enum:
    # Longest message that is kept for reading; what is longer is passed over.
    MESSAGE_LIMIT = 2097152

cdef class FrameTap(TunnelTap):
    cdef RequestContext ctx
    cdef ByteBuffer head       # of the frame that comes
    cdef ByteBuffer message    # of what is read until now
    cdef UsagePeek peek
    cdef uint64_t left         # bytes of the frame's payload to come
    cdef bint inside, final, text, reads, blind
    cdef Py_ssize_t _begin(self) except -2
    cdef int _end(self) except -1
    cdef int _read(self) except -1

# The usage of the event that was read.
cdef TokenUsage usage_of(UsagePeek peek)
# The reader of a connection, None where there is nothing to read.
cdef FrameTap frame_tap(RequestContext ctx, LlmCall call)
