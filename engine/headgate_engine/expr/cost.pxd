# What values cost an evaluation beside the steps of its macros: one step for each 64 bytes or characters, and one for each
# 8 members of a list or map. Work and memory of an evaluation follow the sizes of values, not only their number.

from headgate_engine.expr.nodes cimport EvaluationFrame

cdef enum:
    TEXT_SHIFT = 6
    MEMBER_SHIFT = 3

cdef inline int charge(EvaluationFrame frame, object value) except -1:
    cdef Py_ssize_t steps = 0
    if isinstance(value, str):
        steps = len(<str>value) >> TEXT_SHIFT
    elif type(value) is list:
        steps = len(<list>value) >> MEMBER_SHIFT
    elif type(value) is dict:
        steps = len(<dict>value) >> MEMBER_SHIFT
    elif type(value) is bytes:
        steps = len(<bytes>value) >> TEXT_SHIFT
    if steps:
        if steps > frame.budget:
            frame.budget = 0
            frame.spend()                # raises EvaluationError
        frame.budget -= <int>steps
    return 0
