# Header and query conditions of route rules, and a request's values for their names.

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, uint8_t, uint32_t

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.route.index cimport KeyIndex

cdef class ValuePredicate:
    # One condition as configured.
    cdef readonly str name, kind, text
    cdef bytes raw_name, exact
    cdef object pattern                # compiled linear-time pattern, None for exact
    cdef bint holds(self, const char* value, Py_ssize_t n) except -1

cdef struct Condition:
    uint32_t slot              # number of its name: PSEUDO_* first, then header names; query names count from 0
    PyObject* predicate        # ValuePredicate, kept alive by its table
    const char* exact          # NULL: a pattern
    uint32_t exact_len

cdef enum PseudoSlot:
    PSEUDO_METHOD = 0
    PSEUDO_PATH = 1
    PSEUDO_AUTHORITY = 2
    PSEUDO_SCHEME = 3
    FIRST_HEADER = 4

cdef struct ValueSpan:
    const char* text           # NULL: the request does not have this parameter
    uint32_t length

# Values that one match has read from its request; each part is read for the first rule that needs it. Zero it before a
# match, and forget() it afterwards.
cdef struct Facts:
    int32_t* first             # header slot -> span of its last line, or -1
    int32_t* earlier           # span -> span of the same name before it, or -1
    ValueSpan* values          # query slot -> decoded value

cdef class ConditionTable:
    # Numbers of the names in the conditions of one route table.
    cdef KeyIndex names
    cdef uint32_t headers, queries
    cdef uint8_t[256] header_lengths      # 1 for the lengths of header names in conditions
    cdef bytes scheme
    cdef Condition compiled(self, ValuePredicate predicate, bint query) except *
    cdef bint header_holds(self, const Condition* condition, Facts* facts, MessageHead head) except -1
    cdef bint query_holds(self, const Condition* condition, Facts* facts, MessageHead head) except -1
    cdef int _read_headers(self, Facts* facts, MessageHead head) except -1
    cdef int _read_query(self, Facts* facts, MessageHead head) except -1

cdef void forget(Facts* facts) noexcept nogil
