# Content codings (RFC 9110 section 8.4.1) undone step by step: what comes out of one step is bounded, whatever goes in.

cdef class Decoder:
    cdef readonly str coding
    cdef readonly bint done       # the end that the coding has; what stands behind it is not read
    cdef object work              # what undoes it
    cdef bytes rest               # input that was not looked at yet
    cdef bint more                # output waits inside, although there is no input
    cdef int feed(self, bytes data) except -1
    # The next piece of at most `limit` bytes (a few more with br), b"" when it takes more input. Raises CodingError.
    cdef bytes next(self, Py_ssize_t limit)

# The one coding of a field value, None: it has none. "" for several, and for what nobody here can undo.
cdef str coding_of(value)
# All of a body; raises CodingError, and DecodedTooLong (one of these) when it would be longer than `limit`.
cdef bytes decoded(str coding, bytes body, Py_ssize_t limit)
