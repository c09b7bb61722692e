"""Whatever the text: it is refused with ExpressionError, or gives a value, bool and field or fails with EvaluationError."""

from __future__ import annotations

import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "fuzz")]

from harness import corpus, mutated, observed, run  # noqa: E402

with observed("headgate.expr"):
    from headgate.expr.compile import compile_expression
    from headgate.expr.custom import parse_functions
    from headgate.expr.faults import ExpressionError
    from headgate.expr.functions import GLOBAL_NAMES, METHOD_NAMES

from headgate_drivers.expr import py_equal  # noqa: E402
from headgate_engine.context.request import RequestContext, make_context  # noqa: E402
from headgate_engine.expr.program import Program, as_field  # noqa: E402
from headgate_engine.expr.values import EvaluationError  # noqa: E402

PIECES = [f"{name}(".encode() for name in sorted(GLOBAL_NAMES)]
PIECES += [f".{name}(".encode() for name in sorted(METHOD_NAMES)]
PIECES += [b"request.", b"headers", b'["', b'"]', b"x", b"1", b"-1", b"9223372036854775807", b"1u", b"1.5", b"1e308", b"null",
           b"true", b"'a'", b'b"a"', b'r"\\', b"[", b"]", b"{", b"}", b"(", b")", b"?", b":", b"&&", b"||", b"==", b"in",
           b"%s", b"%d", b"duration('1s')", b"timestamp('2024-01-01T00:00:00Z')", b"dyn(", b"optional.of(", b".orValue(",
           b"// ", b"\xf0\x9f\x98\x80", b"\xed", b"\0", b"jwt.", b"llm.", b"size("]  # fmt: skip
# Its value differs from one evaluation to the next.
MOVING = ("random", "uuid", "now", "Time", "hash")
BINDINGS = {"n": 3, "s": "abc", "l": [1, 2, 5], "t": True, "m": {"a": 1, "b": [None]}}


def context() -> RequestContext:
    headers = [("x", "1"), ("x", "2"), ("Cookie", "a=b; c=d"), ("Accept", "text/html"), ("Y", "caf\xe9")]
    return make_context("POST", "/p/q?a=1&b=%20&a=2", "host.test:80", headers, body=b'{"model":"m","n":[1,2]}')


def outcome(program: Program, ctx: RequestContext) -> tuple[bool, object]:
    """Whether there is a value, and which."""
    try:
        return True, program.evaluate(ctx)
    except EvaluationError:
        return False, None


def check(data: bytes, _: random.Random) -> None:
    """One input: as an expression of a route, with names of its own, and as the functions of a configuration."""
    text = data.decode("utf-8", "replace")
    try:
        parse_functions(text)
    except ValueError:
        pass
    try:
        compile_expression(text, open_names=True).evaluate_with(dict(BINDINGS))
    except (ExpressionError, EvaluationError):
        pass
    try:
        program = compile_expression(text, "log")
    except ExpressionError:
        return
    ctx = context()
    known, value = outcome(program, ctx)
    truth = program.test(ctx)
    field = program.header_value(ctx)
    assert field is None or known, text
    if any(word in text for word in MOVING):
        return
    assert truth == (value if isinstance(value, bool) else -1), (text, value, truth)
    assert field == (as_field(value) if known else None), (text, value, field)
    again, same = outcome(program, ctx)
    assert again == known, text
    try:
        assert not known or value != value or repr(value) == repr(same) or py_equal(value, same), (text, value, same)
    except EvaluationError:
        pass


def main() -> None:
    known = corpus(__file__)
    run(__doc__, lambda source: mutated(source.choice(known), PIECES, source), check, known)


if __name__ == "__main__":
    main()
