# Tokens whose signatures a key set has verified, for all steps that trust that key set.

from libc.stdint cimport int64_t

cdef enum:
    MAX_TOKENS = 16384
    MAX_BYTES = 33554432       # of tokens; their claims have a similar size

cdef class VerifiedToken:
    cdef dict claims
    cdef int64_t until_ns
    cdef list accepted         # the checks that its claims have passed (headgate.crypto.jws.Checks), each object once

cdef class VerifiedTokens:
    cdef dict tokens           # token -> VerifiedToken, the oldest first
    cdef int64_t size          # bytes of all tokens
    # Returns the claims of a token that has passed these checks, None if it is unknown or has expired.
    cdef dict accepted(self, bytes token, object checks)
    cdef VerifiedToken _living(self, bytes token)
    cdef int _make_room(self, Py_ssize_t n) except -1
