# A compiled expression, ready to be evaluated for requests.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.nodes cimport EvaluationFrame, ExpressionNode
from headgate_engine.shared.counters cimport Counter

cdef class Program:
    cdef readonly str text
    cdef readonly frozenset variables       # dotted names that the expression reads
    cdef readonly bint needs_request_body, needs_response_body, needs_response_prefix, needs_usage
    cdef ExpressionNode root
    cdef EvaluationFrame frame                        # reused: a worker evaluates one expression at a time
    cdef int slots
    cdef public Counter failures            # counts evaluations that failed; None: not counted
    cdef int failed(self) except -1

    cdef object value_for(self, RequestContext ctx)
    # test() for a request that is traced: records the value in the trace.
    cdef int watched_test(self, RequestContext ctx) except -2
    cpdef object evaluate(self, RequestContext ctx)
    # 1 true, 0 false, -1 an error or a value that is not a bool.
    cpdef int test(self, RequestContext ctx) except -2
    # The value as a header field value, None after an error or if it cannot be one.
    cpdef bytes header_value(self, RequestContext ctx)
    # Why a condition is neither true nor false, None if it is one of these. Costs an evaluation.
    cdef str why_unknown(self, RequestContext ctx)

cdef bytes field_text(object value)
# The text of an expression for a log line.
cdef str shown(Program program)
