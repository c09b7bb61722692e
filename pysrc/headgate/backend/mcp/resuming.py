"""Answers that a client can come back for: what one brings is kept while nobody reads it (transport of 2025-11-25,
"Resumability and Redelivery").
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Final

from headgate.backend.contract import Stream
from headgate.backend.mcp.replay import Replay
from headgate_engine.sse.encode import encode_comment, encode_event

# How long an answer waits for its client, and how long it is there once it is whole.
AWAY_SECONDS: Final = 60.0
# Answers of one session at a time; of more the oldest is forgotten.
MOST_ANSWERS: Final = 16
KEEPALIVE_SECONDS: Final = 15.0
# The worker that has the stream, a random number, and which event of it.
EVENT_ID: Final = re.compile(r"([0-9a-f]{1,4})w([0-9a-f]{8})-([0-9]{1,9})", re.ASCII)


class KeptAnswer:
    """One answer. `give_up` is called when nobody has read it for AWAY_SECONDS and it is not whole."""

    def __init__(self, replay: Replay, give_up: Callable[[], object]) -> None:
        self.replay = replay
        self.done = False
        self._give_up = give_up
        self._readers = 1
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: bytes) -> str:
        """Keep a message; its event id."""
        self._changed.set()
        return self.replay.add(text)

    def finish(self) -> None:
        """Nothing more will come."""
        self.done = True
        self._changed.set()
        self._stop_timer()

    def cancel(self) -> None:
        """A reader has gone; the last one may come back."""
        self._readers -= 1
        if not self._readers and not self.done:
            self._timer = asyncio.get_running_loop().call_later(AWAY_SECONDS, self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def follow(self, stream: Stream, event_id: str) -> None:
        """Send what came after an event and what comes, up to the end."""
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
    """Those of one session, by the names of their streams. `worker`: who has them."""

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._kept: dict[str, KeptAnswer] = {}

    def open(self, give_up: Callable[[], object]) -> KeptAnswer:
        """Begin to keep an answer."""
        replay = Replay(f"{self._worker:x}w")
        kept = self._kept[replay.name] = KeptAnswer(replay, give_up)
        while len(self._kept) > MOST_ANSWERS:
            del self._kept[next(iter(self._kept))]
        return kept

    def forget_later(self, kept: KeptAnswer) -> None:
        """Have a whole answer forgotten after a while."""
        asyncio.get_running_loop().call_later(AWAY_SECONDS, self._kept.pop, kept.replay.name, None)

    def find(self, event_id: str | None) -> KeptAnswer | None:
        """Return the answer of an event, None where there is none."""
        return self._kept.get((event_id or "").rpartition("-")[0])


def worker_of(event_id: str | None) -> int | None:
    """Return the worker that has the answer of an event; None for the id of another stream."""
    found = EVENT_ID.fullmatch(event_id or "")
    return None if found is None else int(found[1], 16)
