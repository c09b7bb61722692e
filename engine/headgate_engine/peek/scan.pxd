# One pass over a JSON text: checks all of it (RFC 8259) and records the spans of watched members.

from libc.stdint cimport uint8_t

cdef enum JsonKind:
    J_NONE = 0
    J_STRING = 1
    J_NUMBER = 2
    J_TRUE = 3
    J_FALSE = 4
    J_NULL = 5
    J_OBJECT = 6
    J_ARRAY = 7

cdef enum:
    DEPTH_LIMIT = 512

cdef enum Fault:
    F_NONE = 0
    F_EARLY_END
    F_VALUE
    F_NAME
    F_COLON
    F_COMMA
    F_STRING
    F_NUMBER
    F_UTF8
    F_BEHIND
    F_DEPTH

cdef struct Field:
    # A watched member: its name, and the watched object that contains it (0: the top object).
    const char* name
    uint8_t name_len
    uint8_t parent
    # Its first watched member, and the next watched member of its parent; 0: none.
    uint8_t first, next

cdef struct Found:
    int kind                   # JsonKind; J_NONE: not found
    int seen                   # how often its name occurs in its object
    Py_ssize_t start, stop     # the raw value, quotes and braces included

cdef struct Scan:
    # Input (down to `found`) and result.
    const uint8_t* text
    Py_ssize_t length
    const Field* fields
    int count
    int max_depth
    Found* found
    bint duplicate, empty
    int fault                  # Fault
    Py_ssize_t fault_at

# Returns 0, or -1 and sets the fault and its offset. `found` has `count` zeroed elements. A table lists objects before
# their members; element 0 is the whole text.
cdef int scan_text(Scan* s) noexcept nogil


cdef inline Py_ssize_t skip_blanks(const uint8_t* p, Py_ssize_t at, Py_ssize_t n) noexcept nogil:
    while at < n and (p[at] == 32 or p[at] == 10 or p[at] == 13 or p[at] == 9):
        at += 1
    return at
