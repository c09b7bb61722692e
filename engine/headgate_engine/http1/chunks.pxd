from libc.stdint cimport int64_t

# Length of the chunk line at the front, its CR LF included, and the size it announces; its extensions are checked and
# dropped. -1: its end has not come yet. RemoteProtocolError for what can be no chunk line, as early as it is seen.
cdef Py_ssize_t parse_chunk_line(const char* p, Py_ssize_t n, Py_ssize_t limit, int64_t* size) except -2
