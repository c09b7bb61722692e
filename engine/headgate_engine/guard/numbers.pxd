# Numbers and addresses of persons at one place of a text in UTF-8.

from libc.stdint cimport uint8_t

cdef enum:
    MAX_GROUPS = 8
    PHONE_ENDS = 4             # how many ends of a telephone number are tried
    C_DIGIT = 1
    C_WORD = 2                 # letters, digits, underscore
    C_LOCAL = 4                # of an e-mail address in front of @
    C_DOMAIN = 8               # behind it, without dots
    C_START = 16               # where a pass has to look: a digit or @

cdef uint8_t CLASS[256]

cdef struct Group:
    # Digits in a row. `before`: the separator in front of it as ASCII, 0 for the first one.
    Py_ssize_t start
    int length
    int before

# Groups of digits with one separator between each, from `at` on; `groups` has MAX_GROUPS places.
cdef int read_groups(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Group* groups) noexcept nogil
# Where the number that begins with the first group ends, -1 for none.
cdef Py_ssize_t card_at(const uint8_t* p, Py_ssize_t n, Group* groups, int count) noexcept nogil
cdef Py_ssize_t ssn_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil
cdef Py_ssize_t sin_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil
# Candidates whose first digit is at `at`: their start and ends, longest first; how many (PHONE_ENDS at most).
cdef int phone_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t* start, Py_ssize_t* ends) noexcept nogil
# End of the address around the @ at `at`, -1 for none; it begins at or behind `floor`.
cdef Py_ssize_t email_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t floor, Py_ssize_t* start) noexcept nogil
