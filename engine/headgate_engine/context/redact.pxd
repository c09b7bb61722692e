# Redaction of credentials in logged targets.

from headgate_engine.wire.buffer cimport ByteBuffer

# While it lives, the values of a query parameter are redacted in all log lines of the process.
cdef class HiddenParameter:
    cdef bytes name                 # in lower case; None: nothing is hidden

# Returns whether the query p..end has a parameter that contains a credential.
cdef bint has_secret(const char* p, const char* end) except -1
cdef bint is_secret(const char* p, const char* equals, const char* stop) except -1
# Appends start..end, a target with a query that begins at p, without the values of credentials.
cdef int redact(ByteBuffer out, const char* start, const char* p, const char* end) except -1
