# Where members, items and strings lie in a JSON text that was checked before, and how strings are changed in place.
# Offsets are bytes of the text; a string's span has its quotes. Nothing here is safe on a text that was not checked.

cdef enum Kind:
    K_STRING = 34              # what a value begins with; all else is a number or a word
    K_ARRAY = 91
    K_OBJECT = 123

# [(name, start, stop)] of the object at `at`, doubles included; empty when it is none.
cdef list members_at(bytes text, Py_ssize_t at)
# [(start, stop)] of the array at `at`; empty when it is none.
cdef list items_at(bytes text, Py_ssize_t at)
# What the string says, as UTF-8; half a surrogate pair becomes U+FFFD.
cdef bytes unquoted(bytes text, Py_ssize_t start, Py_ssize_t stop)
# A string that says this UTF-8.
cdef bytes quoted(bytes said)
