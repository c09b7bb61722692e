# The compiled form of an expression: a tree of nodes, each of which returns its value for one request.

from headgate_engine.context.request cimport RequestContext

cdef enum:
    BUDGET = 100000            # members visited by all comprehensions of one evaluation
    UNKNOWN = 2                # result of truth(): a key is absent

cdef object ABSENT

# State of one evaluation.
cdef class EvaluationFrame:
    cdef RequestContext ctx    # None: only `bindings` have values
    cdef dict bindings         # names and values that the caller passes (tests), or None
    cdef list slots            # values of the variables that comprehensions and with() bind
    cdef int budget
    cdef str missing           # the key that the last ABSENT stands for
    cdef int spend(self) except -1
    # Raises NoSuchKey for `missing`.
    cdef int raise_absent(self) except -1

cdef class ExpressionNode:
    cdef object eval(self, EvaluationFrame frame)
    # As eval(), but returns ABSENT and sets Frame.missing where eval() would raise NoSuchKey for a key that requests
    # often lack. This saves an exception for callers that can go on without the value.
    cdef object probe(self, EvaluationFrame frame)
    # 1 true, 0 false, UNKNOWN if a value is absent. Raises EvaluationError if the value is not a bool.
    cdef int truth(self, EvaluationFrame frame) except -1
    # As truth(), but raises NoSuchKey instead of returning UNKNOWN.
    cdef int decided(self, EvaluationFrame frame) except -1

cdef class Const(ExpressionNode):
    cdef readonly object value

cdef class Local(ExpressionNode):
    cdef readonly int slot

cdef class Select(ExpressionNode):
    cdef ExpressionNode operand
    cdef str field

cdef object select(object holder, str field)
