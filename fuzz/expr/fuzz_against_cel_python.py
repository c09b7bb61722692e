"""Whatever the expression over bools, ints, texts and lists: our value is that of cel-python's interpreter, or both fail.

The generator stays away from what cel-python is known to get wrong: see tests/engine/expr/test_against_cel_python.py.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

import celpy  # noqa: E402
from celpy import celtypes  # noqa: E402
from harness import observed, run  # noqa: E402

with observed("headgate.expr"):
    from headgate.expr.compile import ExpressionError, compile_expression

from headgate_engine.expr.values import EvaluationError  # noqa: E402

ENVIRONMENT = celpy.Environment()
BINDINGS = {"n": 3, "s": "abc", "l": [1, 2, 5], "t": True}
FAILED = "failed"
MAX_DEPTH = 5
INTS = ("n", "size(l)", "size(s)", "0", "1", "2", "-7", "20")
TEXTS = ("'a'", "'abc'", '"b"', "s", "''")
LISTS = ("l", "[1, 2, 3]", "[]", "[n, 1]")
BOOLS = ("true", "false", "t")


class Chooser:
    """Draws choices from bytes; behind their end the first is always taken, so that short inputs are small expressions."""

    def __init__(self, data: bytes) -> None:
        self.data = iter(data)

    def of(self, choices: tuple[str, ...]) -> str:
        return choices[next(self.data, 0) % len(choices)]

    def sum(self, depth: int) -> str:
        if depth <= 0 or next(self.data, 0) % 2 == 0:
            return self.of(INTS)
        return f"({self.sum(depth - 1)} {self.of(('+', '-', '*', '/', '%'))} {self.sum(depth - 1)})"

    def bool(self, depth: int) -> str:
        kind = next(self.data, 0) % (10 if depth > 0 else 5)
        if kind == 0:
            return self.of(BOOLS)
        if kind == 1:
            return f"{self.sum(depth)} {self.of(('<', '<=', '>', '>=', '==', '!='))} {self.sum(depth)}"
        if kind == 2:
            return f"{self.of(TEXTS)} {self.of(('<', '==', '!='))} {self.of(TEXTS)}"
        if kind == 3:
            return f"{self.of(TEXTS)}.{self.of(('contains', 'startsWith', 'endsWith'))}({self.of(TEXTS)})"
        if kind == 4:
            return f"{self.of(INTS)} in {self.of(LISTS)}"
        one = self.bool(depth - 1)
        if kind == 5:
            return f"!({one})"
        if kind == 6:
            return f"{self.of(LISTS)}.{self.of(('all', 'exists', 'exists_one'))}(x, x > 1 || {one})"
        if kind == 7:
            return f"(({one}) ? ({self.bool(depth - 1)}) : ({self.bool(depth - 1)}))"
        return f"(({one}) {'&&' if kind == 8 else '||'} ({self.bool(depth - 1)}))"


def theirs(text: str) -> object:
    try:
        found = ENVIRONMENT.program(ENVIRONMENT.compile(text)).evaluate(celpy.json_to_cel(BINDINGS))
    except celpy.CELEvalError:
        return FAILED
    return bool(found) if isinstance(found, celtypes.BoolType) else FAILED


def ours(text: str) -> object:
    try:
        return compile_expression(text, open_names=True).evaluate_with(dict(BINDINGS))
    except (EvaluationError, ExpressionError):
        return FAILED


def check(text: str, _: random.Random) -> None:
    """One input."""
    expected = theirs(text)
    if expected is FAILED and "exists_one" in text:
        # cel-python's exists_one() fails through `||` and `&&`, which absorb errors
        # (https://github.com/google/cel-spec/blob/master/doc/langdef.md#logical-operators).
        return
    assert ours(text) == expected, text


def read(data: bytes) -> str:
    return Chooser(data).bool(MAX_DEPTH)


def main() -> None:
    run(__doc__, lambda source: read(source.randbytes(source.randint(1, 40))), check, read=read)


if __name__ == "__main__":
    main()
