# Personal numbers and addresses at one offset of a UTF-8 text.

from libc.stdint cimport uint8_t

cdef enum:
    MAX_GROUPS = 8
    PHONE_ENDS = 4             # most ends of a telephone number that are tried
    C_DIGIT = 1
    C_WORD = 2                 # letters, digits, underscore
    C_LOCAL = 4                # of an e-mail address before the @
    C_DOMAIN = 8               # after the @, without dots
    C_START = 16               # start of a candidate: a digit or @

cdef uint8_t CLASS[256]

cdef struct Group:
    # Consecutive digits. `before`: the separator before them as ASCII, 0 for the first group.
    Py_ssize_t start
    int length
    int before

# Reads groups of digits from `at` on, with one separator between two. `groups` has MAX_GROUPS elements.
cdef int read_groups(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Group* groups) noexcept nogil
# These return the end of the number that begins with the first group, -1 for none.
cdef Py_ssize_t card_at(const uint8_t* p, Py_ssize_t n, Group* groups, int count) noexcept nogil
cdef Py_ssize_t ssn_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil
cdef Py_ssize_t sin_at(const uint8_t* p, Py_ssize_t n, Group* g, int count) noexcept nogil
# Finds candidates with their first digit at `at`: sets their start and ends, longest first. Returns the number of ends
# (at most PHONE_ENDS).
cdef int phone_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t* start, Py_ssize_t* ends) noexcept nogil
# Returns the end of the e-mail address around the @ at `at`, -1 for none. It begins at or behind `floor`.
cdef Py_ssize_t email_at(const uint8_t* p, Py_ssize_t at, Py_ssize_t n, Py_ssize_t floor, Py_ssize_t* start) noexcept nogil
