# Where members, items and strings lie in a JSON text that was checked before, and how strings are changed in place.
# Offsets are bytes of the text; a string's span has its quotes. Nothing here is safe on a text that was not checked.

from libc.stdint cimport uint8_t

cdef enum Kind:
    K_STRING = 34              # what a value begins with; all else is a number or a word
    K_ARRAY = 91
    K_OBJECT = 123

# [(name, start, stop)] of the object at `at`, doubles included; empty when it is none.
cdef list members_at(bytes text, Py_ssize_t at)
# [(start, stop)] of the array at `at`; empty when it is none.
cdef list items_at(bytes text, Py_ssize_t at)
# Offset behind the closing quote of the string at `at`; behind the value at `at`.
cdef Py_ssize_t string_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t value_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil
# Reads the escape at p (its backslash), of which `left` bytes are there; writes up to four bytes. Returns how many were
# written, `size` were read.
cdef int escape(const uint8_t* p, Py_ssize_t left, uint8_t* out, int* size) noexcept nogil
# What the string says, as UTF-8; half a surrogate pair becomes U+FFFD.
cdef bytes unquoted(bytes text, Py_ssize_t start, Py_ssize_t stop)
# A string that says this UTF-8.
cdef bytes quoted(bytes said)
