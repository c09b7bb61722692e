# Macros over lists and maps: all, exists, existsOne, map, filter, transformList, transformMap, with, and similar ones.

from headgate_engine.expr.nodes cimport EvaluationFrame, ExpressionNode

cdef class Comprehension(ExpressionNode):
    cdef ExpressionNode source, predicate, result
    cdef int first, second          # slots of the variables; second is -1 if there is one variable
    cdef int kind
    cdef bint quantify(self, EvaluationFrame frame, object holder) except -1
    cdef int check_budget(self, EvaluationFrame frame, error) except -1
    cdef object collect(self, EvaluationFrame frame, object holder)
    cdef int merge(self, dict entries, object more) except -1
    cdef object rebuild(self, EvaluationFrame frame, object holder)
