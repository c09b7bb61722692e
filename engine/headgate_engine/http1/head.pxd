# Parses complete header sections into spans. Strict: refuses the errors that RFC 9112 allows a recipient to repair.

from headgate_engine.context.headers cimport MessageHead

from libc.stdint cimport uint8_t

# Parses one request or status line with its fields. `p` is exactly the section, its empty line included, and is copied
# into `head`. Raises RemoteProtocolError.
cdef int parse_request(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1
cdef int parse_response(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1
# Parses a trailer section. Fields that are not allowed in trailers are marked as dropped.
cdef int parse_trailers(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1

# Sets the entries of these fields (bytes, in lower case) in a table of 256 by HeaderId.
cdef int mark_ids(uint8_t* table, names) except -1
