# Answers to A2A calls, read for the log while they pass.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.plan.tap cimport ResponseTap
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class AnswerTap(ResponseTap):
    cdef bint bare                       # the result is the whole body (HTTP+JSON)
    cdef bint failed                     # the status says that it is an error
    cdef ByteBuffer kept                 # None: it is too long to be read
    cdef str coding                      # content coding, None: none

cdef AnswerTap answer_tap(bint bare, int64_t limit)
