# Media types of messages (RFC 9110 section 8.3.1).

from headgate_engine.context.headers cimport MessageHead

# Returns whether the content type is `name` (lower case, `n` bytes). Case and parameters are ignored.
cdef bint media_type_is(MessageHead head, const char* name, Py_ssize_t n) noexcept
