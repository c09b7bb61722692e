# WebSocket frames (RFC 6455 section 5): reads whole messages from bytes that may be split anywhere.

from headgate_engine.wire.buffer cimport ByteBuffer

cdef class FrameReader:
    cdef readonly bint masked            # the frames come from a client
    cdef readonly Py_ssize_t limit       # longest message in bytes
    cdef ByteBuffer kept                 # an incomplete frame
    cdef ByteBuffer raw                  # the frames of the current message, as received
    cdef ByteBuffer said                 # their payloads
    cdef Py_ssize_t at                   # what feed() has read of `kept`
    cdef readonly Py_ssize_t moved       # bytes that were moved to the front of `kept`, over all calls
    cdef int opcode                      # of the current message, 0: none
    cdef int _frame(self, list found) except -1
