# Macros over lists and maps: all, exists, existsOne, map, filter, transformList, transformMap, with, and similar ones.

from headgate_engine.expr.nodes cimport Frame, Node

cdef class Comprehension(Node):
    cdef Node source, predicate, result
    cdef int first, second          # slots of the variables; second is -1 if there is one variable
    cdef int kind
    cdef bint quantify(self, Frame frame, object holder) except -1
    cdef int check_budget(self, Frame frame, error) except -1
    cdef object collect(self, Frame frame, object holder)
    cdef int merge(self, dict entries, object more) except -1
    cdef object rebuild(self, Frame frame, object holder)
