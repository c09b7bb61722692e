"""Streamed responses: server-sent events until their source or the client ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from headgate.admin.running import TraceLines

KEEPALIVE: Final = b": keepalive\n\n"
# After this time without an event, a comment shows each side that the other one is still connected.
KEEPALIVE_SECONDS: Final = 1.0


async def events(watch: TraceLines) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a trace and close the watch at the end."""
    lines = aiter(watch.lines())
    pending: asyncio.Future[bytes] | None = None
    try:
        yield b": ready\n\n"
        while True:
            if pending is None:
                pending = asyncio.ensure_future(anext(lines))  # noqa: TID251 - a wait, not a task of its own
            done, _ = await asyncio.wait((pending,), timeout=KEEPALIVE_SECONDS)
            if not done:
                yield KEEPALIVE
                continue
            try:
                line = pending.result()
            except StopAsyncIteration:
                return
            pending = None
            yield b"data: " + line + b"\n\n"
    finally:
        if pending is not None:
            pending.cancel()
        watch.close()
