# Finding personal numbers and addresses, and user patterns, in text: all built-in patterns in one pass over UTF-8 bytes,
# all user patterns in one pass of RE2's automaton. Time is linear in the text; what is not has a budget.

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

cdef class Hits:
    # What one pass found, each kind from left to right without overlaps; phone numbers are candidates, the longest of one
    # start first.
    cdef Hit* items
    cdef Py_ssize_t count, capacity
    cdef Py_ssize_t stopped    # offset where the pass gave up because there were too many hits, -1: it did not
    cdef int add(self, Py_ssize_t start, Py_ssize_t stop, int kind) except -1

cdef class Budget:
    # What one request, or one piece of a stream, may still cost; all texts and guards of it share one.
    cdef public int phone_tries
    cdef public double seconds

cdef class Scanner:
    cdef readonly tuple rules  # ("builtin", name) or ("pattern", text)
    cdef object phone          # bytes -> bool
    cdef int wanted            # bits of Builtin
    cdef int rule_of[BUILTINS]  # Builtin -> index of the first rule that names it, -1
    cdef tuple patterns        # per rule: compiled pattern or None
    cdef bint follows          # a pattern stands behind a built-in
    cdef tuple pattern_rules   # indexes of rules that are patterns, in the order of the set
    cdef object pattern_set    # re2.Set over all patterns, None: fewer than two
    cdef int _pass(self, bytes text, Hits out, int wanted) except -1
    cdef list _resolve(self, bytes text, Hits hits, list order, Budget budget)
