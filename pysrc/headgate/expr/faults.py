"""The error of an expression, in a module of its own: the compiler (11 MB) is imported with the first expression."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression is not valid. The text has the line, the column and the reason.

    `unknown_function`: it calls a function that does not exist.
    """

    def __init__(self, text: str, *, unknown_function: bool = False) -> None:
        super().__init__(text)
        self.unknown_function = unknown_function
