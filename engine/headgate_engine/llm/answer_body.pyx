"""Answers that are kept whole; see answer_body.pxd."""

from libc.stdint cimport int64_t

from headgate_engine.wire.buffer cimport ByteBuffer

# Bytes of an answer that do not count towards what all answers of a worker may have: usual ones never wait for others.
FREE_BYTES = 2 * 1024 * 1024
# What all long answers that are kept at a time may have, in times the limit of one.
LIMITS = 8
TOO_LARGE = "the provider's answer is larger than `frontendPolicies.http.maxModelResponseSize`"
TOO_MANY = "too many long answers of providers are under way; a higher `frontendPolicies.http.maxModelResponseSize` allows more"

cdef int64_t free_bytes = FREE_BYTES
cdef int64_t limits = LIMITS
cdef int64_t held = 0                    # by all of them


cdef AnswerBody answer_body(int64_t limit):
    cdef AnswerBody body = AnswerBody.__new__(AnswerBody)
    body.limit = limit
    return body


cdef str too_long(int64_t length, int64_t limit):
    return TOO_LARGE if length > limit else None


cdef class AnswerBody(ByteBuffer):
    def __dealloc__(self):
        global held
        held = held - self.counted

    cdef str keep(self, const char* p, Py_ssize_t n):
        global held
        cdef int64_t more = self.length + n - free_bytes - self.counted
        if self.length + n > self.limit:
            return TOO_LARGE
        if more > 0:
            if held + more > self.limit * limits:
                return TOO_MANY
            held = held + more
            self.counted = self.counted + more
        self.append(p, n)
        return None


def held_bytes():
    """Return what long answers have that are kept now, in bytes."""
    return held


def kept(int64_t limit, pieces):
    """Python face of an AnswerBody that takes pieces: itself, or why it does not take one."""
    cdef AnswerBody body = answer_body(limit)
    cdef bytes piece
    for piece in pieces:
        told = body.keep(piece, len(piece))
        if told is not None:
            return told
    return body
