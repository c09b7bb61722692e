"""Sessions: whose they are, which worker's, how long they live, how many there may be."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headgate.backend.caller import owner_of as owner_of
from headgate.backend.mcp.event_streams import EventStreams
from headgate.backend.mcp.failure import McpFailure, busy
from headgate.backend.mcp.replay import Replay
from headgate.backend.mcp.resuming import KeptAnswers
from headgate.crypto.sealed import Sealer
from headgate.net.tasks import spawn
from headgate_engine.mcp.sessions import SessionEntry, SessionTable

if TYPE_CHECKING:
    from headgate.backend.mcp.ended import EndedSessions

logger = logging.getLogger("headgate.mcp")

REAP_SECONDS = 30.0
MAX_TOMBSTONES = 10_000
RANDOM_BYTES = 16


class SessionResource(Protocol):
    """What a session holds: a process, links to several targets, or where it stands at its one remote target."""

    @property
    def dead(self) -> bool: ...
    async def stop(self) -> None: ...


class Resumable(SessionResource, Protocol):
    """What outlives the worker. `stop()` ends it everywhere, `release()` only lets go of what is held here."""

    async def release(self) -> None: ...


class SessionLimits(NamedTuple):
    """`ttl_s`: idle time after which a session is ended; `cap`: how many sessions there may be. Of those that own a
    process there may be `processes`, of which `unfinished` ones have not heard of their client again since their
    `initialize`; they end `initialize_s` after its answer. An id brings a session back for `max_age_s`.
    """

    ttl_s: float
    cap: int
    processes: int = 256
    unfinished: int = 32
    initialize_s: float = 60.0
    max_age_s: float = 604_800.0


class Tally(Protocol):
    """How many sessions a backend has: `add(n)` for those of this worker, `total` over all workers, which a worker
    that dies leaves with its own. `add_living`, `living`: those of them that end with their worker, or are started.
    The others: those that own a process, and those of them whose client has not come back.
    """

    def add(self, n: int) -> None: ...
    def add_living(self, n: int) -> None: ...
    def add_processes(self, n: int) -> None: ...
    def add_unfinished(self, n: int) -> None: ...
    @property
    def processes(self) -> int: ...
    @property
    def unfinished(self) -> int: ...
    @property
    def total(self) -> int: ...
    @property
    def living(self) -> int: ...


class OwnTally:
    """The tally of one worker alone."""

    def __init__(self) -> None:
        self.total = self.living = self.processes = self.unfinished = 0

    def add(self, n: int) -> None:
        """Count sessions that have begun, or (below 0) ended."""
        self.total += n

    def add_living(self, n: int) -> None:
        """Count those that live in this worker."""
        self.living += n

    def add_processes(self, n: int) -> None:
        """Count those with a process."""
        self.processes += n

    def add_unfinished(self, n: int) -> None:
        """Count those whose client has not come back since `initialize`."""
        self.unfinished += n


class McpSession(SessionEntry):
    """One client's session. `server`: what it holds; `owner`: who it is for (`owner_of`), "" for nobody known.
    `resumable`: its id can bring it back, at any worker; `lasting`: at the successor of its own. `replay`: what its
    event streams brought; `streams`: those that are open. `answers`: what clients may come back for, who is
    `worker`'s. `unfinished`: it owns a process, and its client has not come back since `initialize`; `deadline`: until
    when.
    """

    def __init__(self, session_id: str, server: Any, now: float, owner: str, worker: int = 0) -> None:
        super().__init__(session_id, server, now, owner)
        self.lasting = False
        self.replay = Replay()
        self.answers = KeptAnswers(worker)
        self.streams = EventStreams(self.replay)
        self.unfinished = False
        self.deadline: asyncio.TimerHandle | None = None

    def close_stream(self) -> None:
        """End the event streams: what would come there is of a session that is none any more."""
        self.streams.end()


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

    def new(self, worker: int, resume_token: bytes = b"") -> str:
        """Return an id for a session of a worker; visible ASCII. `resume_token`: what a successor needs to go on with
        it.
        """
        return self._sealer.seal(worker.to_bytes(2) + secrets.token_bytes(RANDOM_BYTES) + resume_token)

    def owner(self, session_id: str) -> int | None:
        """Return the index of the worker that owns it, None when the id is none of ours."""
        content = self._sealer.open(session_id)
        return None if content is None else int.from_bytes(content[:2])

    def resume_token(self, session_id: str) -> bytes:
        """Return what an id says of its session, b"" for nothing."""
        content = self._sealer.open(session_id)
        return b"" if content is None else content[2 + RANDOM_BYTES :]


class Sessions(SessionTable[McpSession]):
    """The sessions of one backend in one worker. `id_prefix` stands before the ids made here, which tells
    them from others.

    `resumable`: the ids of most say all there is to know of them (`adopt`). Then the table is a memory of this worker
    alone: what is idle, or the longest unused one of a full table, is let go of and nobody is told; its id brings it
    back. Those that live in this worker (`add`) end when they are idle, and there are `cap` of them in all workers.
    `owns_processes`: each has a process, which there are fewer of. `ended`: what knows of sessions that other replicas
    have ended, None where there is nothing to ask.
    """

    def __init__(
        self,
        worker: int,
        ids: SessionIds,
        limits: SessionLimits,
        *,
        clock: Callable[[], float] | None = None,
        tally: Tally | None = None,
        resumable: bool = False,
    ) -> None:
        super().__init__(clock, resumable)
        self.id_prefix = ""
        self.ended: EndedSessions | None = None
        self._worker = worker
        self.ids = ids
        self.limit(limits)
        self.owns_processes = False
        self._clock = time.monotonic if clock is None else clock
        self._tally = OwnTally() if tally is None else tally
        self._resumable = resumable
        self._tombstones: dict[str, None] = {}
        self._reaper: asyncio.Task[None] | None = None

    def limit(self, limits: SessionLimits) -> None:
        """Go on with other limits."""
        self._ttl_s, self._cap = limits.ttl_s, limits.cap
        self._limits = limits

    @contextlib.contextmanager
    def room(self) -> Iterator[None]:
        """Keep a place for a session that is being started; raises the 503 of a full table."""
        self._tally.add(1)
        try:
            if self._resumable:
                self._make_room()
                yield
            else:
                with self._place(), self._process_place(1):
                    yield
        finally:
            self._tally.add(-1)

    @contextlib.contextmanager
    def _process_place(self, unfinished: int) -> Iterator[None]:
        """Keep a place of a session with a process, also one (1) of those that begin; raises a 503."""
        if not self.owns_processes:
            yield
            return
        self._tally.add_processes(1)
        self._tally.add_unfinished(unfinished)
        try:
            if self._tally.processes > self._limits.processes:
                raise busy(f"too many processes: {self._limits.processes} sessions have one")
            if self._tally.unfinished > self._limits.unfinished:
                raise busy(f"too many sessions begin: {self._limits.unfinished} are not initialized")
            yield
        finally:
            self._tally.add_processes(-1)
            self._tally.add_unfinished(-unfinished)

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        """Keep one of the places of sessions that live in a worker; raises the 503 where all are taken."""
        self._tally.add_living(1)
        try:
            if self._tally.living > self._cap:
                raise McpFailure(503, f"too many sessions: {self._cap} are open")
            yield
        finally:
            self._tally.add_living(-1)

    def _make_room(self) -> None:
        """Let go of sessions that are not in use until another one fits; raises the 503 of a full table."""
        while len(self) >= self._cap:
            session = next((one for one in self.entries() if one.resumable and not one.busy), None)
            if session is None:
                raise McpFailure(503, f"too many sessions: {self._cap} are in use")
            self._drop(session.id)
            spawn("mcp release", session.server.release())

    @contextlib.contextmanager
    def in_use(self, session: McpSession) -> Iterator[None]:
        """Keep a session from being idle; its idle time begins when nobody uses it any more."""
        self.begin_use(session)
        try:
            yield
        finally:
            self.end_use(session)

    def add(self, server: SessionResource, owner: str = "", resume_token: bytes = b"") -> McpSession:
        """Register a session of this worker. With a `resume_token` the worker's successor can go on with it
        (`restore`). Where it shows only now that it lives here, raises the 503 of a full table.
        """
        session_id = self.id_prefix + self.ids.new(self._worker, resume_token)
        register = self._settled if self._resumable else self._add
        session = register(session_id, server, owner)
        session.lasting = bool(resume_token)
        if self.owns_processes:
            session.unfinished = True
            self._tally.add_unfinished(1)
        return session

    def await_client(self, session: McpSession) -> None:
        """End the session unless its client comes back in time: `initialize` was answered."""
        if session.unfinished and session.deadline is None and session.id in self:
            loop = asyncio.get_running_loop()
            session.deadline = loop.call_later(self._limits.initialize_s, self._expire, session)

    def confirm(self, session: McpSession) -> None:
        """Note that the client has come back."""
        if session.unfinished:
            session.unfinished = False
            self._tally.add_unfinished(-1)
        if session.deadline is not None:
            session.deadline.cancel()
            session.deadline = None

    def _expire(self, session: McpSession) -> None:
        session.deadline = None
        if session.unfinished and session.id in self:
            logger.info("session ended: not initialized", extra={"mcp.session.id": session.id[:8]})
            self.tombstone(session.id)
            spawn("mcp unfinished", self.remove(session.id))

    def restore(self, session_id: str, server: SessionResource, owner: str = "") -> McpSession:
        """Register a session that this worker's predecessor had; raises the 503 of a full table."""
        with self._process_place(0):
            session = self._settled(session_id, server, owner)
        session.lasting = True
        return session

    def _settled(self, session_id: str, server: SessionResource, owner: str) -> McpSession:
        if self._resumable:
            self._make_room()
        with self._place():
            return self._add(session_id, server, owner)

    def resume_token(self, session_id: str) -> bytes:
        """Return what an id of this backend says of its session; b"" for nothing, and for one that was ended here."""
        if not session_id.startswith(self.id_prefix) or session_id in self._tombstones:
            return b""
        return self.ids.resume_token(session_id[len(self.id_prefix) :])

    def owner(self, session_id: str) -> int | None:
        """Return the index of the worker that made an id, None when it was none of these."""
        if not session_id.startswith(self.id_prefix):
            return None
        return self.ids.owner(session_id[len(self.id_prefix) :])

    def adopt(self, session_id: str, server: Resumable, owner: str = "") -> McpSession:
        """Register a session under an id that says itself what there is to know of it."""
        if session_id not in self:
            self._make_room()
        return self._add(session_id, server, owner, resumable=True)

    def _add(self, session_id: str, server: SessionResource, owner: str, *, resumable: bool = False) -> McpSession:
        session = McpSession(session_id, server, self._clock(), owner, self._worker)
        session.resumable = resumable
        if self.put(session):
            self._tally.add(1)
            if not resumable:
                self._tally.add_living(1)
            if self.owns_processes:
                self._tally.add_processes(1)
        if self.ended is not None:
            self.ended.listen(self)
        if self._reaper is None:
            self._reaper = spawn("mcp reaper", self._reap())
        return session

    def _drop(self, session_id: str) -> McpSession | None:
        session = self.take(session_id)
        if session is not None:
            self._tally.add(-1)
            if not session.resumable:
                self._tally.add_living(-1)
            if self.owns_processes:
                self._tally.add_processes(-1)
            self.confirm(session)
        return session

    async def remove(self, session_id: str) -> bool:
        """End a session, and its event stream; False when there is none."""
        session = self._drop(session_id)
        if session is None:
            return False
        session.close_stream()
        await session.server.stop()
        return True

    async def _let_go(self, session_id: str) -> None:
        session = self._drop(session_id)
        if session is not None:
            session.close_stream()
            # Another worker, or this one after a restart, may go on with one that its id can bring back.
            stays = session.resumable or session.lasting
            await (session.server.release() if stays else session.server.stop())

    def tombstone(self, session_id: str) -> None:
        """Remember that a session was ended: its id could bring it back."""
        self._tombstones[session_id] = None
        while len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]

    async def end_here(self, session_id: str) -> None:
        """Let go of a resumable session that has been ended elsewhere, for good."""
        self.tombstone(session_id)
        await self._let_go(session_id)

    def has_tombstone(self, session_id: str) -> bool:
        """Tell whether a session was ended here."""
        return session_id in self._tombstones

    def oldest(self) -> float:
        """Return when an id must have been issued to bring a session back, in seconds since 1970."""
        return time.time() - self._limits.max_age_s

    async def was_ended(self, session_id: str) -> bool:
        """Tell whether a session that is not known here was ended, by any replica; raises SharedStoreAway."""
        if session_id in self._tombstones:
            return True
        return self.ended is not None and await self.ended.has(session_id)

    async def tell_replicas(self, session_id: str) -> None:
        """Tell other replicas that a session was ended; raises SharedStoreAway."""
        if self.ended is not None:
            await self.ended.add(session_id, int(self._limits.max_age_s) + 1)

    def forget(self, server: SessionResource) -> None:
        """Drop the sessions of a process that has ended."""
        for session in self.entries():
            if session.server is server:
                self._drop(session.id)

    async def _reap(self) -> None:
        while True:
            await asyncio.sleep(min(REAP_SECONDS, self._ttl_s))
            before = self._clock() - self._ttl_s
            for session in self.entries():
                if session.used < before and not session.busy:
                    logger.info("session ended: idle", extra={"mcp.session.id": session.id[:8]})
                    if not session.resumable:
                        self.tombstone(session.id)
                    spawn("mcp idle", self._let_go(session.id) if session.resumable else self.remove(session.id))

    async def aclose(self) -> None:
        """End every session that ends with this worker, let go of the others."""
        if self._reaper is not None:
            self._reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reaper
        await asyncio.gather(*(self._let_go(session.id) for session in self.entries()))
