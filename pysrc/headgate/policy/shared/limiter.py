"""Asks the store that replicas share for leases, decisions and accounts, and gives back what is not used.

What is asked within one turn of the loop goes into one call of the script.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import RedisStore, StoreFailure
from headgate.policy.shared.script import ANSWER, CHARGE, LEASE, RETURN, SCRIPT, TAKE, Question
from headgate.telemetry.metrics import series_key
from headgate_engine.limit.leased import LeasedBucket, StoreState
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.ir.policies import LocalRateLimit

logger = logging.getLogger("headgate.shared_limits")

CALLS: Final = "gw_shared_state_calls_total"
# Entries of one call of the script, which holds the server for some microseconds each.
MOST_ENTRIES: Final = 64
# How often leases and accounts are looked after, and how long a lease lies idle before it is returned. An answer of a
# model that takes longer than an account is looked after is told with the next request.
TEND_S: Final = 0.05
IDLE_NS: Final = 1_000_000_000
IDLE_ACCOUNT_NS: Final = 600 * 1_000_000_000
# Pauses between two looks for a server that is away.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0
EPOCHS: Final = 2**52

Decision = tuple[bool, int, int, int]


class Entry:
    """One question about a bucket; `future` gets how many tokens were granted, None if nobody answered."""

    __slots__ = ("bucket", "future", "joined", "number", "operation")

    def __init__(
        self, bucket: LeasedBucket, operation: int, number: int, future: asyncio.Future[int | None], *, joined: bool
    ) -> None:
        self.bucket = bucket
        self.operation = operation
        self.number = number
        self.future = future
        self.joined = joined


class SharedLimiter:
    """The shared limits of one worker."""

    def __init__(
        self, settings: SharedState, segment: Segment, spawn: Callable[..., asyncio.Task[None]],
        store: RedisStore | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self.state = StoreState(settings.failure == "local")
        self._segment = segment
        self._spawn = spawn
        self._store = RedisStore(settings, SCRIPT) if store is None else store
        self._waiting: list[Entry] = []
        self._active: dict[bytes, LeasedBucket] = {}
        self._asked: dict[bytes, asyncio.Future[int | None]] = {}
        self._tending: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._closed = False
        self._calls = {
            outcome: Counter(segment, series_key(CALLS, {"outcome": outcome})) for outcome in ("answered", "failed")
        }

    def bucket(self, limit: LocalRateLimit) -> LeasedBucket:
        """Return the bucket of a limit."""
        settings = self.settings
        numbers = (limit.max_tokens, limit.tokens_per_fill, limit.fill_interval_ns)
        key = f"{settings.key_prefix}{limit.key}".encode()
        share = max(1, limit.max_tokens * settings.local_share // 100)
        return LeasedBucket(self._segment, self.state, key, numbers, limit.tokens, (share, settings.replicas))

    # -- what steps ask ------------------------------------------------------------------------------------------------
    def want(self, bucket: LeasedBucket) -> None:
        """Ask for a lease, or for the state of an account; nobody waits for it."""
        self.asked(bucket)

    def asked(self, bucket: LeasedBucket) -> asyncio.Future[int | None]:
        """Do the same. Gives how many tokens were leased, None if the store did not answer."""
        found = self._asked.get(bucket.key)
        if found is None:
            found = self._asked[bucket.key] = self._ask(bucket, CHARGE if bucket.tokens else LEASE, bucket.share)
            bucket.asking = True
            found.add_done_callback(lambda _: self._answered(bucket))
            self._look_after(bucket)
        return asyncio.shield(found)

    def _answered(self, bucket: LeasedBucket) -> None:
        bucket.asking = False
        self._asked.pop(bucket.key, None)

    async def decided(self, buckets: tuple[LeasedBucket, ...]) -> list[Decision] | None:
        """Take a token of each bucket until one has none, in one call. None if the store did not answer."""
        asked = [self._ask(bucket, TAKE, 1, joined=number > 0) for number, bucket in enumerate(buckets)]
        found: list[Decision] = []
        for bucket, future in zip(buckets, asked, strict=True):
            granted = await future
            if granted is None:
                return None
            if granted >= 0:
                found.append(bucket.exact(time.monotonic_ns(), granted))
        return found

    # -- calls ---------------------------------------------------------------------------------------------------------
    def _ask(
        self, bucket: LeasedBucket, operation: int, number: int, *, joined: bool = False
    ) -> asyncio.Future[int | None]:
        future: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        if self.state.down or self._closed:
            future.set_result(None)
            return future
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append(Entry(bucket, operation, number, future, joined=joined))
        return future

    def _flush(self) -> None:
        """Send what was asked in this turn. Entries of one request stay together."""
        waiting, self._waiting = self._waiting, []
        while waiting:
            end = MOST_ENTRIES
            while end < len(waiting) and waiting[end].joined:
                end += 1
            self._spawn("shared limits", self._call(waiting[:end]))
            del waiting[:end]

    async def _call(self, entries: Sequence[Entry]) -> None:
        sent = time.monotonic_ns()
        values: list[int] = [secrets.randbelow(EPOCHS)]
        used = [entry.bucket.report(sent) if entry.operation == CHARGE else 0 for entry in entries]
        for entry, charge in zip(entries, used, strict=True):
            values += self._question(entry, charge, sent)
        try:
            answer = await self._store.run([entry.bucket.key for entry in entries], values)
            if len(answer) != ANSWER * len(entries):
                raise StoreFailure("an unexpected response")
        except StoreFailure as error:
            for entry, charge in zip(entries, used, strict=True):
                entry.bucket.unreport(charge)
            self._fail(error)
            self._settle(entries, None)
            return
        except asyncio.CancelledError:
            self._settle(entries, None)
            raise
        self._calls["answered"].add()
        self._settle(entries, [self._told(entry, sent, answer, at) for at, entry in enumerate(entries)])

    def _question(self, entry: Entry, charge: int, now: int) -> Question:
        bucket = entry.bucket
        epoch, seq, tick, rest_us = bucket.known(now)
        if self.state.local:
            # A replica that goes on without the store does not hold the store to what it knew before, either.
            rest_us = 0
        back = 0
        if entry.operation == RETURN:
            back = entry.number
        elif entry.operation == LEASE:
            back = bucket.give_back(now, ended_only=True)
        number = charge if entry.operation == CHARGE else entry.number
        return Question(
            bucket.max_tokens, bucket.tokens_per_fill, max(1, bucket.fill_interval_ns // 1000), entry.operation, number,
            back, tick, epoch, seq, rest_us, int(entry.joined),
        )  # fmt: skip

    @staticmethod
    def _told(entry: Entry, sent: int, answer: list[int], at: int) -> int:
        granted, *state = answer[at * ANSWER : (at + 1) * ANSWER]
        leased = granted if entry.operation == LEASE else 0
        left, tick, rest_us, seq, epoch = state
        entry.bucket.told(sent, (leased, left, tick, rest_us, seq, epoch))
        return granted

    @staticmethod
    def _settle(entries: Sequence[Entry], granted: Sequence[int] | None) -> None:
        for number, entry in enumerate(entries):
            if not entry.future.done():
                entry.future.set_result(None if granted is None else granted[number])

    # -- a store that is away ------------------------------------------------------------------------------------------
    def _fail(self, error: StoreFailure) -> None:
        self._calls["failed"].add()
        if self.state.down or self._closed:
            return
        self.state.set_down(True)
        fields = {"store": self.settings.place, "error": str(error), "failureMode": self.settings.failure}
        logger.warning("the shared store does not answer", extra=fields)
        self._looking = self._spawn("shared store", self._look())

    async def _look(self) -> None:
        """Wait until the server answers again."""
        pause = FIRST_PAUSE_S
        while not self._closed:
            await asyncio.sleep(pause)
            try:
                await self._store.ping()
            except StoreFailure:
                pause = min(2 * pause, LAST_PAUSE_S)
                continue
            self.state.set_down(False)
            logger.info("the shared store answers again", extra={"store": self.settings.place})
            return

    # -- leases that nobody uses, and what was used of accounts --------------------------------------------------------
    def _look_after(self, bucket: LeasedBucket) -> None:
        if self._closed or bucket.active:
            return
        bucket.active = True
        self._active[bucket.key] = bucket
        if self._tending is None:
            self._tending = self._spawn("shared limits", self._tend())

    async def _tend(self) -> None:
        while self._active:
            await asyncio.sleep(TEND_S)
            if not self.state.down:
                for bucket in list(self._active.values()):
                    self._tend_one(bucket, time.monotonic_ns())
        self._tending = None

    def _tend_one(self, bucket: LeasedBucket, now: int) -> None:
        if bucket.asking:
            return
        idle_ns = bucket.idle_ns(now)
        if bucket.tokens:
            if bucket.owes:
                self.want(bucket)
            elif idle_ns > IDLE_ACCOUNT_NS:
                self._let_go(bucket)
        elif idle_ns > IDLE_NS:
            self._return(bucket, now)
            self._let_go(bucket)

    def _return(self, bucket: LeasedBucket, now: int) -> asyncio.Future[int | None] | None:
        left = bucket.give_back(now, ended_only=False)
        return self._ask(bucket, RETURN, left) if left else None

    def _let_go(self, bucket: LeasedBucket) -> None:
        bucket.active = False
        del self._active[bucket.key]

    async def aclose(self) -> None:
        """Give back what is left of leases, tell what was used, and close the connections."""
        if self._closed:
            return
        now = time.monotonic_ns()
        last: list[Awaitable[Any]] = []
        for bucket in list(self._active.values()):
            if bucket.tokens:
                last.append(self._ask(bucket, CHARGE, 0))
            else:
                returned = self._return(bucket, now)
                last += [] if returned is None else [returned]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.settings.timeout_ms / 1000):
                await asyncio.gather(*last)
        self._closed = True
        self._active.clear()
        for task in (self._tending, self._looking):
            if task is not None:
                task.cancel()
        await self._store.aclose()
