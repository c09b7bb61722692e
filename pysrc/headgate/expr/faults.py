"""What is wrong with an expression. Apart from the compiler (11 MB), which is imported with the first expression."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression that cannot be used: the text has line, column and reason."""
