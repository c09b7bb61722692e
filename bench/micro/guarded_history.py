"""A history of 200 messages through the built-in guards: reading its texts and looking through all of them in one pass."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from tests.oracles.guard_rig import rig

from bench.micro.llm_translate import history
from bench.micro.timing import Row, compare, show
from headgate_engine.context.request import make_context
from headgate_engine.guard.scan import BUILTIN_NAMES
from headgate_engine.llm.translate.writers import dump_json


def rows() -> Iterator[Row]:
    body = dump_json(history("completions", False))
    with asyncio.Runner() as runner:
        open_rig = rig()
        found = runner.run(open_rig.__aenter__())
        for action in ("mask", "reject"):
            guards = found.guards(f"{{request: [{{regex: {{action: {action}, builtins: [{', '.join(BUILTIN_NAMES)}]}}}}]}}")
            ctx = make_context("POST", "/v1/chat/completions", "gw.test")
            assert guards.begin(ctx).request(body, "completions") == body, "there is nothing to find"
            yield compare(f"guards: 200 messages, 100 KiB, 5 built-ins, {action}",
                          lambda g=guards, c=ctx: g.begin(c).request(body, "completions"))  # type: ignore[misc]  # fmt: skip
        runner.run(open_rig.__aexit__(None, None, None))


if __name__ == "__main__":
    show(rows())
