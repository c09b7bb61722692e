# The client's half of stream translation for Bedrock's ConverseStream, whose events are frames.

from headgate_engine.llm.translate.blocks cimport BlockWriter
from headgate_engine.wire.buffer cimport ByteBuffer

cdef class ConverseWriter(BlockWriter):
    cdef ByteBuffer piece                # the payload of a frame, for the time of writing it
    cdef object latency                  # latency(): milliseconds since the request
    cdef object mask                     # mask(data): redacted thinking as Base64
    cdef int _delta(self, Py_ssize_t index, bytes member, const char* p, Py_ssize_t n, bytes end) except -1
    cdef int _stop_block(self, Py_ssize_t index) except -1
    cdef int _frame(self, bytes head, object payload) except -1
