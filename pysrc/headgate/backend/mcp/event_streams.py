"""The event streams that a client has open of one session (GET): several at a time, and each message on one of them.

The newest one gets the messages, since the others may be what is left of connections that have broken. When it ends,
the one before it goes on.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#multiple-connections
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from headgate.backend.mcp.replay import Replay
from headgate.net.tasks import spawn
from headgate_engine.sse.encode import encode_comment, encode_event

# Maximum number of streams per session; the oldest one is ended.
MOST_STREAMS: Final = 8
KEEPALIVE_SECONDS: Final = 15.0

Note = Callable[[bytes], str]
# Opens what is listened to and returns the work of passing it on, None if there is nothing. It gets what gives messages
# their event ids.
Listen = Callable[[Note], Awaitable[Coroutine[Any, Any, None] | None]]
Send = Callable[[bytes], Awaitable[None]]


class EventStream:
    """One connection. `number`: of the stream that it carries or continues. `over`: it must end."""

    def __init__(self, number: int, replay: Replay) -> None:
        self.number = number
        self.over = False
        self._replay = replay
        self._turn = asyncio.Event()
        self._owed: list[bytes] = []
        self._turn.set()

    @property
    def serves(self) -> bool:
        """Whether messages go to it."""
        return self._turn.is_set() and not self.over

    def note(self, text: bytes) -> str:
        """Store a message that goes to this stream and return its event id."""
        event_id = self._replay.add(text, self.number)
        if not self.serves:
            # It was under way when another stream took over, and belongs to this one all the same.
            self._owed.append(encode_event(text, "message", event_id))
        return event_id

    def yield_turn(self) -> None:
        """Let a newer one have the messages."""
        self._turn.clear()

    def take_turn(self) -> None:
        """Get the messages again, or the news that it is over."""
        self._turn.set()

    async def wait(self, send: Send) -> None:
        """Wait until messages go to this stream again, or it is over. Comments keep the connection open."""
        while self._owed:
            await send(self._owed.pop(0))
        while not self._turn.is_set():
            try:
                async with asyncio.timeout(KEEPALIVE_SECONDS):
                    await self._turn.wait()
            except TimeoutError:
                await send(encode_comment())


class EventStreams:
    """Those of one session. `replay` keeps the last messages of all of them."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._open: list[EventStream] = []
        self._count = 0
        self._handover = asyncio.Lock()
        self._work: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def serve(self, last_id: str | None, listen: Listen, send: Send) -> bool:
        """Serve one connection until its client leaves, or what is listened to ends, or the session. Return False if
        there was nothing.

        `last_id`: the stream goes on behind this event; a connection that still has it ends. `send` sends what is no
        message.
        """
        one = self._begin(last_id)
        begun = False
        try:
            while not one.over:
                work = None
                async with self._handover:
                    if one.serves:
                        await self._stop()
                        found = await listen(one.note)
                        if found is None:
                            return begun
                        begun = True
                        work = self._work = spawn("mcp listen", _guarded(found))
                if work is not None:
                    await self._run(one, work)
                if one.serves:
                    break
                await one.wait(send)
            return True
        finally:
            self._end(one)

    async def _run(self, one: EventStream, work: asyncio.Task[None]) -> None:
        if not one.serves:
            _cancel(work)
        try:
            await asyncio.wait([work])
        finally:
            work.cancel()
            await asyncio.wait([work])
            if self._work is work:
                self._work = None

    async def _stop(self) -> None:
        """What is listened to may be listened to once only."""
        if self._work is not None:
            _cancel(self._work)
            await asyncio.wait([self._work])

    def _begin(self, last_id: str | None) -> EventStream:
        number = self._replay.stream_of(last_id)
        if number is None:
            number, self._count = self._count, self._count + 1
        for one in [one for one in self._open if one.number == number]:
            self._give_up(one)
        if len(self._open) >= MOST_STREAMS:
            self._give_up(self._open[0])
        for one in self._open:
            one.yield_turn()
        if self._work is not None:
            _cancel(self._work)
        one = EventStream(number, self._replay)
        self._open.append(one)
        return one

    def _give_up(self, one: EventStream) -> None:
        self._open.remove(one)
        one.over = True
        one.take_turn()

    def _end(self, one: EventStream) -> None:
        if one in self._open:
            self._open.remove(one)
            if self._open:
                self._open[-1].take_turn()

    def end(self) -> None:
        """End all: the session is none any more."""
        for one in list(self._open):
            self._give_up(one)
        if self._work is not None:
            _cancel(self._work)


def _cancel(work: asyncio.Task[None]) -> None:
    """Cancel behind the first step of the work, which holds what has been opened."""
    asyncio.get_running_loop().call_soon(work.cancel)


async def _guarded(work: Coroutine[Any, Any, None]) -> None:
    with contextlib.suppress(ConnectionResetError):
        await work
