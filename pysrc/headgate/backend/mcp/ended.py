"""Sessions that were ended, by any of the replicas that share a store; the id of one could bring it back at each.

What is known here of ended sessions is kept in the worker as well, so that it outlasts the memory of the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from headgate.backend.mcp.failure import SharedStoreAway
from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import StoreFailure
from headgate.net.redis_tombstones import EndedWord, RedisTombstones
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.backend.mcp.session import Sessions

logger = logging.getLogger("headgate.mcp")

KIND: Final = "mcp-ended"
CALLS: Final = "gw_shared_state_calls_total"
# Ended sessions that a worker remembers; the oldest is forgotten, and the store still knows it.
MOST_KNOWN: Final = 10_000
# Names in one call of the store.
BATCH: Final = 200
# Pauses between two looks for a server that is away.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0


class EndedSessions:
    """What one worker knows and asks. `spawn` starts a task of the worker."""

    def __init__(
        self,
        settings: SharedState,
        segment: Segment,
        spawn: Callable[..., asyncio.Task[None]],
        store: RedisTombstones | None = None,
    ) -> None:
        self._settings = settings
        self._spawn = spawn
        self._store = RedisTombstones(settings, KIND) if store is None else store
        self._tables: WeakSet[Sessions] = WeakSet()
        # Until when they are kept (monotonic seconds), and those that the store has not been told of.
        self._known: dict[str, float] = {}
        self._owed: set[str] = set()
        self._down = False
        self._turn = 0
        self._listening: asyncio.Task[None] | None = None
        self._closed = False
        self._calls = {
            outcome: Counter(segment, series_key(CALLS, {"outcome": outcome})) for outcome in ("answered", "failed")
        }

    # -- what sessions ask ---------------------------------------------------------------------------------------------
    def listen(self, table: Sessions) -> None:
        """End sessions of a table when another replica has ended them."""
        self._tables.add(table)
        if self._listening is None and not self._closed:
            self._listening = self._spawn("mcp ended sessions", self._listen())

    async def has(self, session_id: str) -> bool:
        """Tell whether a session was ended. Without the store: False, or (`failureMode: deny`) SharedStoreAway."""
        while session_id not in self._known:
            turn = self._turn
            try:
                self._check_up()
                found = await self._store.has([session_id])
            except StoreFailure as error:
                self._fail(error)
                if self._settings.failure == "deny":
                    raise SharedStoreAway from None
                return False
            self._calls["answered"].add()
            # Word that came while nobody listened was lost, but the store has it.
            if found[0] or turn == self._turn:
                return found[0] or session_id in self._known
        return True

    async def add(self, session_id: str, seconds: int) -> None:
        """Tell the replicas that a session was ended. Without the store they are told when it is back;
        `failureMode: deny`: raises SharedStoreAway.
        """
        self._note(session_id, seconds)
        self._owed.add(session_id)
        try:
            self._check_up()
            await self._store.add(session_id, seconds)
        except StoreFailure as error:
            self._fail(error)
            if self._settings.failure == "deny":
                raise SharedStoreAway from None
            return
        self._calls["answered"].add()
        self._owed.discard(session_id)

    def _check_up(self) -> None:
        if self._down or self._closed:
            raise StoreFailure("the store is not reachable")

    def _note(self, session_id: str, seconds: int) -> None:
        self._known[session_id] = time.monotonic() + seconds
        while len(self._known) > MOST_KNOWN:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._owed.discard(oldest)

    # -- a store that is away ------------------------------------------------------------------------------------------
    def _fail(self, error: StoreFailure) -> None:
        """Note that the store is lost, and try to reach it again."""
        if self._down or self._closed:
            return
        self._lost(error)
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self._spawn("mcp ended sessions", self._listen(FIRST_PAUSE_S))

    def _lost(self, error: StoreFailure) -> None:
        self._calls["failed"].add()
        if not self._down:
            self._down = True
            fields = {"store": self._settings.place, "error": str(error), "failureMode": self._settings.failure}
            logger.warning("the shared store of ended sessions does not answer", extra=fields)

    async def _listen(self, pause_s: float = 0.0) -> None:
        """Hear of ended sessions, for ever."""
        while True:
            await asyncio.sleep(pause_s)
            try:
                async with contextlib.aclosing(self._store.words()) as words:
                    async for word in words:
                        if word is None:
                            await self._catch_up()
                            pause_s = 0.0
                        else:
                            self._heard(word)
            except StoreFailure as error:
                self._lost(error)
            pause_s = min(max(FIRST_PAUSE_S, 2 * pause_s), LAST_PAUSE_S)

    async def _catch_up(self) -> None:
        """Tell the store what it may have missed, and ask what was missed here."""
        self._turn += 1
        now = time.monotonic()
        self._known = {name: until for name, until in self._known.items() if until > now}
        for name in self._owed & self._known.keys():
            await self._store.add(name, self._left(name, now))
        self._owed.clear()
        for names in _batches(list(self._known)):
            await self._store.restore({name: self._left(name, now) for name in names if name in self._known})
        for table in list(self._tables):
            for names in _batches([session.id for session in table.entries() if session.resumable or session.lasting]):
                for name, ended in zip(names, await self._store.has(names), strict=True):
                    if ended:
                        self._end(name)
        if self._down:
            self._down = False
            logger.info("the shared store of ended sessions answers again", extra={"store": self._settings.place})

    def _left(self, name: str, now: float) -> int:
        return max(1, int(self._known[name] - now))

    def _heard(self, word: EndedWord) -> None:
        self._note(word.name, word.seconds)
        self._end(word.name)

    def _end(self, session_id: str) -> None:
        for table in list(self._tables):
            if session_id in table:
                logger.info("session ended: by another replica", extra={"mcp.session.id": session_id[:8]})
                self._spawn("mcp ended session", table.end_here(session_id))

    async def aclose(self) -> None:
        """Stop to listen, and close the connections."""
        self._closed = True
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        await self._store.aclose()


def _batches(names: list[str]) -> Iterator[list[str]]:
    left = iter(names)
    while batch := list(islice(left, BATCH)):
        yield batch
