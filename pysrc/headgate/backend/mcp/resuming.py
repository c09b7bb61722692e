"""Resumable responses: messages are stored while their client is disconnected.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#resumability-and-redelivery
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Final

from headgate.backend.contract import ResponseStream
from headgate.backend.mcp.replay import Replay
from headgate_engine.lazy_pattern import lazy_pattern
from headgate_engine.sse.encode import encode_comment, encode_event

# Time that an incomplete response waits for its client, and that a complete one is stored.
AWAY_SECONDS: Final = 60.0
# Maximum number of responses per session; the oldest one is forgotten.
MOST_ANSWERS: Final = 16
KEEPALIVE_SECONDS: Final = 15.0
# The worker with the stream, a random number, and the number of the event.
EVENT_ID: Final = lazy_pattern(r"([0-9a-f]{1,4})w([0-9a-f]{8})-([0-9]{1,9})", re.ASCII)


class KeptAnswer:
    """One response. `give_up` is called if the response is incomplete and has had no reader for AWAY_SECONDS."""

    def __init__(self, replay: Replay, give_up: Callable[[], object]) -> None:
        self.replay = replay
        self.done = False
        self._give_up = give_up
        self._readers = 1
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: bytes) -> str:
        """Store a message and return its event id."""
        self._changed.set()
        return self.replay.add(text)

    def finish(self) -> None:
        """Mark the response as complete."""
        self.done = True
        self._changed.set()
        self._stop_timer()

    def cancel(self) -> None:
        """Remove a reader; after the last one, the response waits for a reconnection."""
        self._readers -= 1
        if not self._readers and not self.done:
            self._timer = asyncio.get_running_loop().call_later(AWAY_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def follow(self, stream: ResponseStream, event_id: str) -> None:
        """Send the messages after an event, and new ones until the response is complete."""
        self._readers += 1
        self._stop_timer()
        try:
            while True:
                self._changed.clear()
                for one, text in self.replay.after(event_id):
                    await stream.send(encode_event(text, "message", one))
                    event_id = one
                if self.done:
                    break
                try:
                    async with asyncio.timeout(KEEPALIVE_SECONDS):
                        await self._changed.wait()
                except TimeoutError:
                    await stream.send(encode_comment())
            with contextlib.suppress(ConnectionResetError):
                await stream.end()
        finally:
            self.cancel()


class KeptAnswers:
    """The resumable responses of one session, by the names of their streams. `worker` is the index of this worker."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._kept: dict[str, KeptAnswer] = {}

    def open(self, give_up: Callable[[], object]) -> KeptAnswer:
        """Return a new response that is stored."""
        replay = Replay(f"{self._worker:x}w")
        kept = self._kept[replay.name] = KeptAnswer(replay, give_up)
        while len(self._kept) > MOST_ANSWERS:
            del self._kept[next(iter(self._kept))]
        return kept

    def forget_later(self, kept: KeptAnswer) -> None:
        """Remove a complete response after AWAY_SECONDS."""
        asyncio.get_running_loop().call_later(AWAY_SECONDS, self._kept.pop, kept.replay.name, None)

    def find(self, event_id: str | None) -> KeptAnswer | None:
        """Return the response with an event, None if there is none."""
        return self._kept.get((event_id or "").rpartition("-")[0])


def worker_of(event_id: str | None) -> int | None:
    """Return the worker with the response of an event id, None if the id is that of another stream."""
    found = EVENT_ID.fullmatch(event_id or "")
    return None if found is None else int(found[1], 16)
