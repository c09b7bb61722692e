# Which format a client speaks, told by the end of its path, and where in a target the model stands.

cdef class RouteMap:
    cdef readonly tuple suffixes         # (bytes, str), longest first
    cdef tuple plain                     # the same in small letters
    cdef readonly str rest               # format of everything else
    cdef str find(self, const char* path, Py_ssize_t n)
    # The format of the longest suffix; None where none fits.
    cdef str named(self, const char* path, Py_ssize_t n)

# The raw model of a path such as /v1beta/models/{m}:verb or /model/{m}/converse; None without one.
cdef tuple model_span(bytes path)
