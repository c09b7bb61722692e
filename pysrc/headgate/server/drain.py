"""The drain of a worker: it accepts nothing new and finishes what has begun."""

from __future__ import annotations

import asyncio
import time

from headgate.server.listen import Acceptor
from headgate_engine.link.worker import Worker

POLL_SECONDS = 0.05
# An idle connection that was used within this time may be about to carry the next request: it is told with that
# request's answer, not closed under it.
QUIET_SECONDS = 1.0


async def drain(worker: Worker, acceptors: list[Acceptor], min_s: float, max_s: float) -> None:
    """Stop accepting after `min_s` seconds. Return when no connection is left, or after `max_s` seconds.

    Responses carry `connection: close` from the start. Idle connections are closed after a second without input, or
    after half of the time. What is left at the end is aborted.
    """
    started = time.monotonic()
    worker.begin_drain()
    if min_s > 0:
        await asyncio.sleep(min(min_s, max_s))
    await asyncio.gather(*(acceptor.stop() for acceptor in acceptors))
    # What was accepted last becomes a connection in a later turn of the loop, and must be counted.
    await asyncio.sleep(POLL_SECONDS)
    while worker.connection_count() or worker.arriving_count():
        elapsed = time.monotonic() - started
        if elapsed >= max_s:
            worker.abort_all()
            break
        worker.close_idle(0.0 if elapsed > max_s / 2 else QUIET_SECONDS)
        await asyncio.sleep(POLL_SECONDS)
