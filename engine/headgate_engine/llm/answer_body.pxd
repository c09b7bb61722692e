# Answers that are kept whole until they can be translated or judged: each of them is bounded, and so are all of a worker.

from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t

cdef class AnswerBody(ByteBuffer):
    cdef int64_t limit                   # most bytes of this one
    cdef int64_t counted                 # what it has of what all may have
    # Appends; what stands in the way of that, or None.
    cdef str keep(self, const char* p, Py_ssize_t n)

cdef AnswerBody answer_body(int64_t limit)
# Why an answer of that length (-1: not known) will not be kept, or None.
cdef str too_long(int64_t length, int64_t limit)
