"""Expressions of policies, checked while the file is read."""

from __future__ import annotations

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document.nodes import MapEntry
from headgate.errors import Problem
from headgate.expr.faults import ExpressionError


def checked(context: Context, record: Record, key: str, phase: str) -> str | None:
    """Return the text of the expression at `key`, None when there is none; what is wrong with it is reported."""
    text = record.get(key)
    if text is None:
        return None
    check(context, record, key, str(text), phase)
    return str(text)


def check(context: Context, record: Record, key: str, text: str, phase: str) -> bool:
    """Whether an expression can be used in `phase`; if not, the reason is reported at `key`."""
    from headgate.expr.shapes import EXPRESSIONS  # see headgate.expr.faults

    try:
        EXPRESSIONS.check(text, phase, context.functions)
    except ExpressionError as error:
        # A function that could not be read was told where it stands.
        if context.has_all_functions or not error.unknown_function:
            context.fault(Problem.VALUE, record, key, str(error))
        return False
    context.notes.expressions[text, phase] = None
    return True


def check_map(context: Context, record: Record, key: str, phase: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of name and expression in the map at `key`; what is wrong with one is reported at its name."""
    entries = record.get(key)
    if not entries:
        return ()
    node = record.at(key)
    inner = Record(node.node if isinstance(node, MapEntry) else record.node, f"{record.path}.{key}", {})
    for name, text in entries.items():
        check(context, inner, name, text, phase)
    return tuple(entries.items())
