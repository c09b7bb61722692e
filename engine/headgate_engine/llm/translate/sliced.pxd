# Long JSON in slices: decoding and encoding hold the interpreter's lock in one call each, however long a text is. In a
# thread beside the loop (headgate.backend.llm.off_loop) a long text is worked on in many short calls instead.

cdef class Cuts:
    # The runs of members of one array or object.
    cdef const char* text
    cdef Py_ssize_t at, end            # behind the opening bracket; the closing one, -1: there is none
    cdef list runs                     # (start, stop)
    cdef int find(self, bytes text, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t size) except -1
