# Media types of messages (RFC 9110 section 8.3.1).

from headgate_engine.context.headers cimport MessageHead

# Whether the content type is that one (lower case, `n` bytes), whatever its case and its parameters.
cdef bint media_type_is(MessageHead head, const char* name, Py_ssize_t n) noexcept
