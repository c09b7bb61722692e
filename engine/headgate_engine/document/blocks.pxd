# Reads YAML that is written the plain way. See the .pyi.

cdef class BlockReader:
    cdef str text
    cdef Py_ssize_t size
    # The present line: its first character, that behind its last one, its number (from 1); and the next character to read.
    cdef Py_ssize_t begin, end, line, at
    cdef bint more                          # whether there is a line with content at hand
    cdef int depth
    cdef Py_ssize_t count                   # values and keys
    cdef Py_ssize_t most
    cdef bint plain                         # how the last scalar was written
    cdef object node, entry, resolve, expand
    cdef dict names                         # keys that occurred: most do so again and again

    cdef bint next_line(self) except -1
    cdef bint _marker(self) except -1
    cdef bint _dash(self) except -1
    cdef object line_node(self)
    cdef object sequence(self)
    cdef object item(self, Py_ssize_t outer)
    cdef object mapping(self, Py_ssize_t column, str key, Py_ssize_t key_column)
    cdef object mapped(self, Py_ssize_t column)
    cdef str key(self)
    cdef object value(self, Py_ssize_t outer)
    cdef int end_line(self, Py_ssize_t outer) except -1
    cdef str scalar(self)
    cdef str quoted(self, Py_UCS4 mark)
    cdef object scalar_node(self, str text, Py_ssize_t column)
    cdef object empty(self, Py_ssize_t line, Py_ssize_t column)
    cdef object flow(self)
    cdef object flow_list(self)
    cdef object flow_map(self)
    cdef str flow_scalar(self)
    cdef Py_UCS4 flow_char(self) except? 0
    cdef int enter(self) except -1
    cdef int leave(self) except -1
