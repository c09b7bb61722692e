"""Runs long work in small pieces, between which the event loop serves its connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar

# How long one piece may hold the loop. A step of the work itself is shorter: some hundred microseconds.
SLICE_SECONDS: Final = 0.001

Result = TypeVar("Result")
# A call that takes long and gives the interpreter's lock away between its pieces.
Work = Callable[[], object]


async def in_slices(work: Generator[Work | None, None, Result], seconds: float = SLICE_SECONDS) -> Result:
    """Run `work` and yield to the loop after every `seconds`. Return the result of `work`, or raise what it raises.

    Calls that `work` yields run in a thread before it goes on.
    """
    while True:
        end = time.perf_counter() + seconds
        try:
            while time.perf_counter() < end:
                call = next(work)
                if call is not None:
                    from headgate.backend.llm.off_loop import off_loop  # threads: not for a plain file

                    await off_loop(call)
                    break
        except StopIteration as done:
            result: Result = done.value
            return result
        await asyncio.sleep(0)


def at_once(work: Generator[Work | None, None, Result]) -> Result:
    """Run `work` to its end without yielding, for callers without an event loop."""
    while True:
        try:
            call = next(work)
            if call is not None:
                call()
        except StopIteration as done:
            result: Result = done.value
            return result
