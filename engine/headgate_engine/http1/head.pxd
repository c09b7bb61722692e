# Head parsing: complete header sections to spans. Strict: what RFC 9112 lets a recipient repair is refused.

from headgate_engine.context.headers cimport MessageHead

from libc.stdint cimport uint8_t

# Parses one request or status line with its fields. `p` holds exactly the section, its empty line included, and is
# copied into `head`. Raises RemoteProtocolError.
cdef int parse_request(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1
cdef int parse_response(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1
# Fields only (a trailer section); those that may not stand in trailers are marked dropped.
cdef int parse_trailers(MessageHead head, const char* p, Py_ssize_t n, int max_headers) except -1

# Sets the entries of these fields (bytes, in lower case) in a table of 256 by HeaderId.
cdef int mark_ids(uint8_t* table, names) except -1
