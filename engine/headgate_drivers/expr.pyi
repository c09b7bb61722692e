from typing import Any

from headgate_engine.context.request import RequestContext
from headgate_engine.expr.program import Program

def py_equal(a: Any, b: Any) -> bool:
    """Return whether two values are equal by the rules of ==."""

def py_compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1; 2 if a NaN makes every order false. Raises EvaluationError if the types have no order."""

def operate(operator: str, a: Any, b: Any) -> Any:
    """Return `a operator b` for + - * / %, in and []. Raises EvaluationError, or ValueError for another operator."""

def bench_program(program: Program, ctx: RequestContext, times: int) -> int:
    """Evaluate an expression `times` times in C, without the cost of Python calls. Return the last result."""
