"""Expressions of policies, checked while the file is read."""

from __future__ import annotations

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.expr.compile import ExpressionError, compile_expression


def checked(context: Context, record: Record, key: str, phase: str) -> str | None:
    """Return the text of the expression at `key`, None when there is none; what is wrong with it is reported."""
    text = record.get(key)
    if text is None:
        return None
    check(context, record, key, str(text), phase)
    return str(text)


def check(context: Context, record: Record, key: str, text: str, phase: str) -> bool:
    """Whether an expression can be used in `phase`; if not, the reason is reported at `key`."""
    try:
        compile_expression(text, phase, context.functions)
    except ExpressionError as error:
        context.fault(Problem.VALUE, record, key, str(error))
        return False
    return True
