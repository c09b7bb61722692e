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
    C_INSIDE = 32              # may stand inside of a number, or is a byte of a character that may
    C_OPENS = 64               # a number may begin with it
    # Bytes in front of a number that decide what it is.
    CONTEXT = 40

cdef uint8_t CLASS[256]

cdef struct Clean:
    # Where a text that still grows can be cut without harm: no match, however the text goes on, has a byte on both sides
    # of `at`, and what a match behind it is depends on CONTEXT bytes in front of it at most. `walked`: offset that the
    # search has come to. `open`: the bytes in front of it may belong to a number. `state`: of the users' patterns there, and
    # `matched`: the last place where one of them may have ended (watch.pxd).
    Py_ssize_t at, walked, matched
    int state
    bint open

cdef struct Group:
    # Consecutive digits. `before`: the separator before them as ASCII, 0 for the first group.
    Py_ssize_t start
    int length
    int before

# Returns whether no number or address is under way behind the next byte of a text. The offsets of `clean` stay.
cdef inline bint closes(uint8_t c, Clean* clean) noexcept nogil:
    cdef uint8_t kind = CLASS[c]
    if not kind & C_INSIDE:
        clean.open = False
    elif kind & C_OPENS:
        clean.open = True
    return not clean.open and not kind & (C_WORD | C_LOCAL | C_DOMAIN) and c != 64

# Moves `clean` on to the last such place in a text of `n` bytes. Each byte is looked at once.
cdef void walk(const uint8_t* p, Py_ssize_t n, Clean* clean) noexcept nogil
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
