# Frames of a WebSocket on their way (RFC 6455 section 5): whole messages out of any cut of bytes.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef class FrameReader:
    cdef readonly bint masked            # of a client
    cdef readonly Py_ssize_t limit       # bytes of a message
    cdef ByteBuffer kept                 # a frame that is not complete
    cdef ByteBuffer raw                  # frames of the message so far, as they came
    cdef ByteBuffer said                 # what they say
    cdef int opcode                      # of the message under way, 0: none is
    cdef int _frame(self, list found) except -1
