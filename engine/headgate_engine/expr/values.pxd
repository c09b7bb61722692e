# Values of expressions. Null, bool, double, string, bytes, list and map are Python's own types; int is a Python int in
# the range of int64. The types that Python does not have are defined here.

cdef class Uint:
    cdef readonly object value          # 0 .. 2**64 - 1

cdef class Duration:
    cdef readonly object ns             # nanoseconds, signed

cdef class Timestamp:
    cdef readonly object ns             # nanoseconds since 1970-01-01T00:00:00Z

cdef class TypeValue:
    cdef readonly str name

cdef class OptionalValue:
    cdef readonly bint present
    cdef readonly object inner

cdef class Redacted:
    # A credential: an expression may compare it and pass it on, a log line never shows it.
    cdef bytes text

cdef object type_of(object value)
cdef bint equal(object a, object b) except -1
# -1, 0, 1; 2 if a NaN makes every order false.
cdef int compare(object a, object b) except -3
cdef object add(object a, object b)
cdef object subtract(object a, object b)
cdef object multiply(object a, object b)
cdef object divide(object a, object b)
cdef object modulo(object a, object b)
cdef object negate(object a)
cdef bint contains(object item, object holder) except -1
cdef object index(object holder, object key)
cdef object checked_int(object value)
cdef object checked_uint(object value)
