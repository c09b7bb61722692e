# Spans of members, items and strings in a JSON text, and changes of strings in place. Offsets count bytes of the text;
# the span of a string includes its quotes. All functions are unsafe on a text that has not been checked.

from libc.stdint cimport uint8_t

cdef enum Kind:
    K_STRING = 34              # first byte of a value; all others begin a number or a word
    K_ARRAY = 91
    K_OBJECT = 123

# Returns [(name, start, stop)] of the object at `at`, duplicates included; [] for other types.
cdef list members_at(bytes text, Py_ssize_t at)
# Returns [(start, stop)] of the array at `at`; [] for other types.
cdef list items_at(bytes text, Py_ssize_t at)
# Return the offset behind the closing quote of the string at `at`; behind the value at `at`.
cdef Py_ssize_t string_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t value_end(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil
# Decodes the escape at p (its backslash), of which `left` bytes exist, to at most four bytes. Returns the number of
# bytes written and sets `size` to the number read.
cdef int escape(const uint8_t* p, Py_ssize_t left, uint8_t* out, int* size) noexcept nogil
# Returns the decoded string as UTF-8. Half a surrogate pair becomes U+FFFD.
cdef bytes unquoted(bytes text, Py_ssize_t start, Py_ssize_t stop)
# Returns UTF-8 text as a JSON string.
cdef bytes quoted(bytes said)
