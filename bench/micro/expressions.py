"""headgate_engine.expr against cel-python's interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import celpy

from bench.micro.timing import Row, compare, compare_times, nanoseconds, same, show
from headgate.expr.compile import compile_expression
from headgate_drivers.expr import bench_program
from headgate_engine.context.request import make_context

CLAIMS: dict[str, Any] = {"sub": "ada", "groups": ["dev", "ops", "admin"]}
ENVIRONMENT = celpy.Environment()
TIMES = 1000
EXPRESSIONS = (
    ("claim list and path", 'jwt.groups.exists(g, g == "admin") && request.path.startsWith("/v1")'),
    ("header", 'request.headers["x-team"] == "red"'),
    ("claim in a list", 'jwt.sub in ["bob", "eve", "ada"]'),
)


def rows() -> Iterator[Row]:
    ctx = make_context("GET", "/v1/models", "a.test", [("x-team", "red"), ("accept", "*/*")])
    ctx.jwt = CLAIMS
    request = {"path": "/v1/models", "headers": {"x-team": "red", "accept": "*/*"}}
    bindings = celpy.json_to_cel({"jwt": CLAIMS, "request": request})
    for name, text in EXPRESSIONS:
        program = compile_expression(text)
        oracle = ENVIRONMENT.program(ENVIRONMENT.compile(text))
        same(program.test(ctx) == 1, bool(oracle.evaluate(bindings)))
        yield compare_times(
            f"expression: {name}",
            lambda program=program: nanoseconds(lambda: bench_program(program, ctx, TIMES), TIMES),  # type: ignore[misc]
            lambda oracle=oracle: nanoseconds(lambda: oracle.evaluate(bindings)),  # type: ignore[misc]
            against="cel-python",
        )
    text = EXPRESSIONS[0][1]
    yield compare("expression: compile", lambda: compile_expression(text), lambda: ENVIRONMENT.compile(text),
                  against="cel-python, parse only")  # fmt: skip


if __name__ == "__main__":
    show(rows())
