"""Values of expressions, which tests compare with other implementations of CEL, and the time that an expression takes."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.expr.program cimport Program
from headgate_engine.expr.values cimport add, compare, contains, divide, equal, index, modulo, multiply, subtract


def py_equal(a, b):
    return bool(equal(a, b))


def py_compare(a, b):
    return compare(a, b)


def operate(str operator, a, b):
    if operator == "+":
        return add(a, b)
    if operator == "-":
        return subtract(a, b)
    if operator == "*":
        return multiply(a, b)
    if operator == "/":
        return divide(a, b)
    if operator == "%":
        return modulo(a, b)
    if operator == "in":
        return bool(contains(a, b))
    if operator == "[]":
        return index(a, b)
    raise ValueError(operator)


def bench_program(Program program not None, RequestContext ctx, int times):
    cdef int found = 0
    for _ in range(times):
        found = program.test(ctx)
    return found
