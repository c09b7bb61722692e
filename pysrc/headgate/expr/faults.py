"""The error of an expression, in a module of its own: the compiler (11 MB) is imported with the first expression."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression is not valid. The text has the line, the column and the reason."""
