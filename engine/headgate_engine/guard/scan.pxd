# Finds personal numbers and addresses, and users' patterns, in text: all built-in patterns in one pass over UTF-8
# bytes, all users' patterns in one pass of RE2's automaton. Time is linear in the text; the parts that are not have a
# budget.

from libc.stdint cimport uint8_t

from headgate_engine.guard.numbers cimport Group
from headgate_engine.guard.watch cimport PatternWatch

cdef enum:
    B_SSN = 0
    B_CARD = 1
    B_PHONE = 2
    B_EMAIL = 3
    B_SIN = 4
    BUILTINS = 5

cdef struct Hit:
    Py_ssize_t start, stop
    int kind                   # Builtin

cdef struct Hits:
    # Matches of one pass: each kind from left to right without overlaps. Telephone numbers are candidates, for each
    # start the longest first.
    Hit* items
    Py_ssize_t count, capacity
    Py_ssize_t stopped         # offset where the pass stopped because of too many hits, -1: it was complete

cdef struct Order:
    # Built-ins in the order of their rules. `wanted`: one bit for each.
    int kinds[BUILTINS]
    int count, wanted

cdef class Workspace:
    # Memory of consecutive searches of one thread. `taken`: the hits of the last search, ascending.
    cdef Hits hits, taken, found, merged

cdef class ScanBudget:
    # Time that one request, or one piece of a stream, may still cost. All its texts and guards share one.
    cdef public double seconds

cdef class Scanner:
    # Immutable but for the states of `watch`, so that several threads may use it.
    cdef readonly tuple rules  # ("builtin", name) or ("pattern", text)
    cdef int rule_of[BUILTINS]  # Builtin -> index of the first rule that names it, -1
    cdef Order order           # all built-ins
    cdef tuple patterns        # per rule: compiled pattern or None
    cdef bint follows          # a pattern comes after a built-in
    cdef tuple pattern_rules   # indexes of rules that are patterns, in the order of the set
    cdef object pattern_set    # guard.pattern_set.PatternSet over all patterns, None: fewer than two
    cdef PatternWatch watch    # of the patterns, None: there are none, or they cannot be watched
    cdef int stages            # texts that rules see one after the other: each pattern, and built-ins side by side, one more
    # Finds the built-ins in a text, those that begin at or behind `start`. Where two overlap, the one of the first rule in
    # the list wins.
    cdef int search(self, const uint8_t* p, Py_ssize_t start, Py_ssize_t n, const Order* order, Workspace work) except -1 nogil
    # The edits of start..stop of a text. `suspected`: a pattern may match there. For `steps` see _staged().
    cdef list edits_between(self, bytes text, Py_ssize_t start, Py_ssize_t stop, bint suspected, list steps)
    cdef list _staged(self, bytes text, Py_ssize_t start, object suspects, ScanBudget budget, list steps)
    # Returns the hits as edits: (start, stop, replacement, rule).
    cdef list builtin_edits_of(self, Workspace work)
    cdef Order _order(self, Py_ssize_t first, Py_ssize_t last)
    cdef list _builtin_edits(self, bytes text, Py_ssize_t start, Py_ssize_t stop, Order order)
    cdef int _pass(self, const uint8_t* p, Py_ssize_t first, Py_ssize_t n, Hits* out, int wanted) except -1 nogil
    cdef int _numbers(self, const uint8_t* p, Py_ssize_t n, Group* groups, int count, int wanted, Py_ssize_t* floor,
                      Hits* out) except -1 nogil
    cdef int _take(self, const uint8_t* p, int kind, Workspace work) except -1 nogil
    cdef int _merge(self, Workspace work) except -1 nogil
