from libc.stdint cimport int64_t

# Returns the length of the chunk line at the start, its CR LF included, and sets the chunk's size; extensions are
# checked and dropped. Returns -1 if the line is not complete. Raises RemoteProtocolError for an invalid line as early
# as possible.
cdef Py_ssize_t parse_chunk_line(const char* p, Py_ssize_t n, Py_ssize_t limit, int64_t* size) except -2
