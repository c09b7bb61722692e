# Decoders of content codings (RFC 9110 section 8.4.1) that work in steps. The output of a step is bounded for any
# input.

cdef class Decoder:
    cdef readonly str coding
    cdef readonly bint done       # the end that the coding itself marks has been reached
    cdef object work              # the library's decoder
    cdef bytes rest               # input, of which the part from `at` on is not decoded yet
    cdef Py_ssize_t at
    cdef Py_ssize_t piece         # input for the next call of the library
    cdef readonly Py_ssize_t members     # gzip members or zstd frames that have begun
    cdef readonly Py_ssize_t given       # bytes that the library was given, those that it gave back counted again
    cdef Py_ssize_t produced
    cdef bint more                # the decoder holds more output, even without input
    cdef int feed(self, bytes data) except -1
    cdef bint _another(self) except -1
    # Returns the next piece of at most `limit` bytes (a few more with br), b"" if it needs more input. Raises
    # CodingError.
    cdef bytes next(self, Py_ssize_t limit)

# Returns the single coding of a field value, None without one, "" for several and for unknown ones.
cdef str coding_of(value)
# Returns the whole decoded body. Raises CodingError, or its subclass DecodedTooLong past `limit` bytes.
cdef bytes decoded(str coding, bytes body, Py_ssize_t limit)
