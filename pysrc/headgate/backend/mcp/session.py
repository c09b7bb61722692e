"""Sessions with child processes: who they belong to, how long they live, how many there may be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from headgate.backend.mcp.failure import McpFailure
from headgate.crypto.sealed import Sealer
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.mcp")

MAX_SESSIONS = 10_000
REAP_SECONDS = 30.0
MAX_BURIED = 10_000


class Held(Protocol):
    """What a session holds: a process, or links to several targets."""

    @property
    def dead(self) -> bool: ...
    async def stop(self) -> None: ...


class Session:
    """One client's session. `server`: a process of its own, or the links of a federated session."""

    def __init__(self, session_id: str, server: Any, now: float) -> None:
        self.id = session_id
        self.server = server
        self.used = now
        self.busy = 0


class SessionIds:
    """Makes and reads session ids: the owning worker and a random number, sealed with AES-256-GCM.

    `key`: 32 bytes, the same in all workers. Nobody without it can make an id or read one.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sealer = Sealer(key, "mcp session")

    def sealer(self, purpose: str) -> Sealer:
        """Return what seals other ids with the same key."""
        return Sealer(self._key, purpose)

    def new(self, worker: int) -> str:
        """Return an id for a session of a worker; visible ASCII."""
        return self._sealer.seal(worker.to_bytes(2) + secrets.token_bytes(16))

    def owner(self, session_id: str) -> int | None:
        """Return the index of the worker that owns it, None when the id is none of ours."""
        content = self._sealer.open(session_id)
        return None if content is None else int.from_bytes(content[:2])


class Sessions:
    """The sessions of one backend in one worker. `ttl_s`: idle time after which one is ended; `cap`: how many there
    may be. `mark` stands before the ids made here, so that others can be told from them at a glance.
    """

    def __init__(
        self,
        worker: int,
        ttl_s: float,
        ids: SessionIds,
        clock: Callable[[], float] = time.monotonic,
        cap: int = MAX_SESSIONS,
    ) -> None:
        self.mark = ""
        self._worker = worker
        self.ids = ids
        self._ttl_s = ttl_s
        self._clock = clock
        self._cap = cap
        self._starting = 0
        self._by_id: dict[str, Session] = {}
        self._buried: dict[str, None] = {}
        self._reaper: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Keep a place for a session that is being started; raises the 503 of a full table."""
        if len(self._by_id) + self._starting >= self._cap:
            raise McpFailure(503, "too many sessions")
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    @contextlib.contextmanager
    def in_use(self, session: Session) -> Iterator[None]:
        """Keep a session from being idle; its idle time begins when nobody uses it any more."""
        session.busy += 1
        try:
            yield
        finally:
            session.busy -= 1
            session.used = self._clock()

    def add(self, server: Held) -> Session:
        """Register a session of this worker."""
        return self.adopt(self.mark + self.ids.new(self._worker), server)

    def owner(self, session_id: str) -> int | None:
        """Return the index of the worker that made an id, None when it was none of these."""
        if not session_id.startswith(self.mark):
            return None
        return self.ids.owner(session_id[len(self.mark) :])

    def adopt(self, session_id: str, server: Held) -> Session:
        """Register a session under an id that says itself what there is to know of it."""
        session = Session(session_id, server, self._clock())
        self._by_id[session.id] = session
        if self._reaper is None:
            self._reaper = spawn("mcp reaper", self._reap())
        return session

    def find(self, session_id: str) -> Session | None:
        """Return a living session and note that it is used."""
        session = self._by_id.get(session_id)
        if session is None or session.server.dead:
            return None
        session.used = self._clock()
        return session

    async def remove(self, session_id: str) -> bool:
        """End a session; False when there is none."""
        session = self._by_id.pop(session_id, None)
        if session is None:
            return False
        await session.server.stop()
        return True

    def bury(self, session_id: str) -> None:
        """Remember that a session was ended: its id could bring it back."""
        self._buried[session_id] = None
        while len(self._buried) > MAX_BURIED:
            del self._buried[next(iter(self._buried))]

    def buried(self, session_id: str) -> bool:
        """Tell whether a session was ended here."""
        return session_id in self._buried

    def forget(self, server: Held) -> None:
        """Drop the sessions of a process that has ended."""
        for session_id in [key for key, session in self._by_id.items() if session.server is server]:
            del self._by_id[session_id]

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(REAP_SECONDS, self._ttl_s))
            before = self._clock() - self._ttl_s
            for session in list(self._by_id.values()):
                if session.used < before and not session.busy:
                    logger.info("session ended: idle", extra={"mcp.session.id": session.id[:8]})
                    spawn("mcp idle", self.remove(session.id))

    async def aclose(self) -> None:
        """End every session."""
        if self._reaper is not None:
            self._reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaper
        await asyncio.gather(*(self.remove(key) for key in list(self._by_id)))
