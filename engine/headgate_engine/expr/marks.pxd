# Finds the string literals of expressions. See the .pyi.

# Tells whether a quote behind a character belongs to a literal with a prefix, as in r"".
cdef bint is_word(Py_UCS4 c) noexcept nogil
