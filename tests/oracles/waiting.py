"""Waiting for a condition on an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

MOST_SECONDS = 60


async def until(condition: Callable[[], object], what: str = "") -> None:
    deadline = time.monotonic() + MOST_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what or "it does not happen"
        await asyncio.sleep(0.005)


async def no_time(_seconds: float) -> None:
    """A sleep for what waits long."""
    await asyncio.sleep(0)
