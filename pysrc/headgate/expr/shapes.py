"""Compiles expressions that differ only in their string literals once per shape.

Large configurations are generated: ten thousand routes have a handful of expressions, with a different name or path in
each. A shape is an expression whose string literals are replaced by placeholders ("marks"). It is compiled once; the
program of an expression is then a copy of the tree with the expression's own texts. If the compiler depends on a text
(a pattern, a folded constant), or if the copy would differ from the program compiled from the expression itself, the
shape is discarded, and its expressions are compiled one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from headgate.expr.compile import MAX_CHARS, compile_expression, compile_noted
from headgate.expr.custom import CustomFunctions
from headgate.expr.literals import string
from headgate.expr.transport import named as _named  # noqa: F401 (its import lets programs be pickled)
from headgate_engine.expr.marks import CLOSE, OPEN, mark_literals
from headgate_engine.expr.nodes import ExpressionNode
from headgate_engine.expr.program import Program

MAX_SHAPES: Final = 4_096
MAX_PROGRAMS: Final = 1_024
_MARK: Final = re.compile(f"{OPEN}([0-9]+){CLOSE}")

Fill = Callable[[list[str]], Any]


class _Shapeless(Exception):
    """Expressions of this shape must be compiled one by one."""


def _fill(value: Any) -> Fill | None:
    """Return a function that copies `value` with texts in place of its marks, or None if it has no marks.

    Raises _Shapeless if a mark is only a part of a text.
    """
    kind = type(value)
    if kind is str:
        return _fill_text(value)
    if kind is bytes:
        inner = _fill_text(value.decode("utf-8", "replace"))
        return None if inner is None else lambda texts: inner(texts).encode()
    if kind in (tuple, list, frozenset):
        parts = list(value)
        fills = [_fill(part) for part in parts]
        if not any(fills):
            return None
        pairs = list(zip(parts, fills, strict=True))
        return lambda texts: kind([part if fill is None else fill(texts) for part, fill in pairs])
    if kind is dict:
        entries = _fill(tuple(value.items()))
        return None if entries is None else lambda texts: dict(entries(texts))
    if not isinstance(value, ExpressionNode):
        return None
    reduced: Any = value.__reduce__()
    make, arguments, *state = reduced
    given, rest = _fill(arguments), _fill(tuple(state))
    if given is None and rest is None:
        return None
    if not state:
        assert given is not None
        return lambda texts: make(*given(texts))

    def copy(texts: list[str]) -> Any:
        made = make(*(arguments if given is None else given(texts)))
        made.__setstate__((state if rest is None else rest(texts))[0])
        return made

    return copy


def _fill_text(text: str) -> Fill | None:
    if OPEN not in text:
        return None
    mark = _MARK.fullmatch(text)
    if mark is None:
        raise _Shapeless
    number = int(mark[1])
    return lambda texts: texts[number]


def equal_trees(one: Any, other: Any) -> bool:
    """Return whether two trees are equal. Pickles are no measure: equal sets may have different orders in them."""
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in (tuple, list):
        return len(one) == len(other) and all(map(equal_trees, one, other))
    if kind is dict:
        return equal_trees(list(one.items()), list(other.items()))
    if isinstance(one, ExpressionNode):
        return equal_trees(one.__reduce__(), other.__reduce__())
    return repr(one) == repr(other) if kind is float else bool(one == other)  # nan, and 0.0 beside -0.0


class Shape:
    """The compiled program of a shape. Raises _Shapeless if the program depends on the texts."""

    def __init__(self, marked: str, phase: str) -> None:
        self.program, read = compile_noted(marked, phase)
        if read:
            raise _Shapeless
        self.fill: Fill | None = _fill(self.program.root_node)

    def program_of(self, text: str, texts: list[str]) -> Program:
        """Return the program of one expression of this shape."""
        shared = self.program
        root = shared.root_node if self.fill is None else self.fill(texts)
        return Program(text, root, shared.slot_count, shared.variables)


class Expressions:
    """Compiles expressions, and caches shapes as well as the programs of expressions without a shape."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, str], Shape | None] = {}
        self._programs: dict[tuple[str, str, int], tuple[CustomFunctions | None, Program]] = {}

    def program(self, text: str, phase: str, functions: CustomFunctions | None = None) -> Program:
        """Return the program of an expression as compile_expression() does. Raises ExpressionError."""
        found = None if functions or len(text) > MAX_CHARS else self._by_shape(text, phase)
        return self._by_text(text, phase, functions) if found is None else found

    def check(self, text: str, phase: str, functions: CustomFunctions | None = None) -> None:
        """Raise ExpressionError if an expression cannot be used; one whose shape is known costs no program."""
        if functions or len(text) > MAX_CHARS or self._shape(text, phase) is None:
            self._by_text(text, phase, functions)

    def _by_text(self, text: str, phase: str, functions: CustomFunctions | None) -> Program:
        key = (text, phase, id(functions) if functions else 0)
        known = self._programs.get(key)
        if known is None:
            if len(self._programs) >= MAX_PROGRAMS:
                self._programs.clear()
            # The reference keeps the functions alive, so that their id stays unique while it is part of a key.
            known = self._programs[key] = (functions, compile_expression(text, phase, functions))
        return known[1]

    def _by_shape(self, text: str, phase: str) -> Program | None:
        found = self._shape(text, phase)
        try:
            return None if found is None else found[0].program_of(text, found[1])
        except ValueError:
            return None  # as _shape() does

    def _shape(self, text: str, phase: str) -> tuple[Shape, list[str]] | None:
        """Return the shape of an expression that can be used, and its texts; None where it has no shape."""
        marked, tokens = mark_literals(text)
        if not tokens:
            return None
        key = (marked, phase)
        try:
            texts = [string(token) if "\\" in token else token[1:-1] for token in tokens]
            if key not in self._shapes:
                if len(self._shapes) >= MAX_SHAPES:
                    self._shapes.clear()
                self._shapes[key] = _proven(marked, phase, text, texts)
            shape = self._shapes[key]
            return None if shape is None else (shape, texts)
        except ValueError:
            # A text or the expression is malformed; compile_expression() will raise the error for the expression.
            return None


def _proven(marked: str, phase: str, text: str, texts: list[str]) -> Shape | None:
    """Return the shape if its copy for `text` equals the program compiled from `text`, None otherwise.

    Raises ExpressionError if `text` is not a valid expression.
    """
    alone = compile_expression(text, phase)
    try:
        shape = Shape(marked, phase)
    except (_Shapeless, ValueError):
        return None
    copy = shape.program_of(text, texts)
    return shape if equal_trees(copy.root_node, alone.root_node) and copy.variables == alone.variables else None


# One instance per process, so that a reload reuses the shapes of the previous load.
EXPRESSIONS: Final = Expressions()
