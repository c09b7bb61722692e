# Authorities of requests, for every protocol: host[:port] without user information (RFC 9110 section 4.2).

cdef bint is_authority(const char* p, Py_ssize_t n) noexcept nogil
# Whether a valid authority ends with a port that is not 0.
cdef bint has_port(const char* p, Py_ssize_t n) noexcept nogil
