"""Answers that go on: server-sent events that end with their source or with the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from headgate.admin.running import TraceLines

KEEPALIVE: Final = b": keepalive\n\n"
# A comment after this long without an event tells a client that it is still connected, and us that it is.
KEEPALIVE_SECONDS: Final = 1.0


async def events(watch: TraceLines) -> AsyncGenerator[bytes, None]:
    """Yield the frames of a trace; closes the watch in the end."""
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
