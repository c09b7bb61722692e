# The texts that digests of configurations are made of. See the .pyi.

# Appends the texts of one value to `out`; -1: an exception.
cdef int write(object value, dict kinds, object learn, list out) except -1
cdef int write_tuple(tuple values, dict kinds, object learn, list out) except -1
