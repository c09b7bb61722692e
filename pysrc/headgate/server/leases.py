"""What a gateway leases of the limits of virtual keys that it shares with others, in the supervisor.

All workers spend one lease, which lies in the accounts (headgate_engine.limit.account). A request that has no room
tells the supervisor and waits; what all workers want meanwhile goes into one question. Once a second what nobody uses
is given back, so that a gateway holds about what it uses in two seconds, and what requests under way have reserved. The
store is told how much the latter is, since it takes that back of a gateway that is killed: once a second, and within
GLANCE_SECONDS when so much of it has been spent that it would take back too much.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from headgate.ir.gateway import Gateway
from headgate.ir.request_log import RequestLogStore
from headgate.ir.shared_state import SharedState
from headgate.net.tasks import spawn
from headgate.policy.leases import LeaseWant
from headgate.server.control import LeasesCame, LeaseStoreState, WantLeases
from headgate.server.leased_account import LeasedAccount
from headgate.server.worker_pool import WorkerHandle
from headgate.telemetry.spend.budgets import (
    FENCE_SECONDS,
    Budget,
    BudgetFailure,
    LeaseAnswer,
    LeaseExpired,
    LeaseQuestion,
    Standing,
)
from headgate_engine.limit.account import LeaseState
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.leases")

# Questions of one call.
MOST_QUESTIONS: Final = 64
TEND_SECONDS: Final = 1.0
GLANCE_SECONDS: Final = 0.05
FENCE_NS: Final = FENCE_SECONDS * 10**9
# Looks without a lease and without use after which an account is not looked after any more.
IDLE_LOOKS: Final = 5
# Such accounts whose leases are told to a store that has lost its memory.
MOST_RESTING: Final = 100_000
# Accounts that are looked at between two turns of the loop, in about 2 ms.
STEP: Final = 100
# Pauses between two looks for a store that is away.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.05, 1.0


class BudgetStore(Protocol):
    """Where leases come from. All methods raise BudgetFailure."""

    place: str

    async def ask(self, questions: Sequence[LeaseQuestion]) -> list[LeaseAnswer]:
        """Answer all questions, or none. Raises LeaseExpired as well."""

    async def heard(self) -> Standing:
        """Be heard, and return what the store knows of this gateway."""

    async def aclose(self) -> None:
        """End."""


class LeaseSettings(NamedTuple):
    """Which store it is; the other one is None."""

    redis: SharedState | None
    database: RequestLogStore | None


def settings_of(gateway: Gateway) -> LeaseSettings | None:
    """Return the store that a configuration leases from, None if its gateway is alone."""
    keys, process = gateway.virtual_keys, gateway.process
    if keys is None or keys.leases is None:
        return None
    if keys.leases == "redis":
        return LeaseSettings(process.shared_state, None)
    return LeaseSettings(None, process.request_log)


def open_store(settings: LeaseSettings) -> BudgetStore:
    """Return the store, with its client."""
    if settings.redis is not None:
        from headgate.policy.shared.budgets import RedisBudgets

        return RedisBudgets(settings.redis)
    from headgate.telemetry.spend.budgets_postgres import PostgresBudgets

    assert settings.database is not None
    return PostgresBudgets(settings.database)


class LeaseKeeper:
    """The leases of one gateway. `opened` makes the store."""

    def __init__(self, segment: Segment, opened: Callable[[LeaseSettings], BudgetStore] = open_store) -> None:
        self._segment = segment
        self._opened = opened
        self._settings: LeaseSettings | None = None
        self._store: BudgetStore | None = None
        self._state = LeaseState(segment)
        self._accounts: dict[tuple[str, str], LeasedAccount] = {}
        # Those of them that lend.
        self._lenders: set[LeasedAccount] = set()
        self._glanced = 0.0
        # From when on, by the monotonic clock, workers do without what is lent; 0: never.
        self._fence_ns = 0
        # Names of accounts that nobody uses now, and that have leased in a window which may still run.
        self._resting: dict[tuple[str, str], None] = {}
        # What the store is still to be told since it has lost its memory, or has taken back what was lent. It says that
        # once, so this stays until it has answered.
        self._owed: dict[Budget, tuple[LeasedAccount, LeaseQuestion]] = {}
        self._workers: list[WorkerHandle] = []
        self._waiting: list[tuple[WorkerHandle, WantLeases]] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Future[None] | None = None
        self._down = False

    async def prepare(self, gateway: Gateway, workers: Iterable[WorkerHandle]) -> None:
        """Lease from the store of a configuration before it comes into force. Without one nothing changes: forget()."""
        settings = settings_of(gateway)
        if settings is not None and self._settings != settings:
            await self.stop()
        for worker in workers:
            worker.on_wants = self.wanted
            if worker not in self._workers:
                self._workers.append(worker)
            if self._down:
                worker.send(LeaseStoreState(down=True))
        if settings is not None and self._store is None:
            self._settings, self._store = settings, self._opened(settings)
            self._task = spawn("leases", self._run())

    async def forget(self, gateway: Gateway) -> None:
        """Stop if a configuration, which is in force, leases nothing."""
        if settings_of(gateway) is None:
            await self.stop()

    def wanted(self, worker: WorkerHandle, message: WantLeases) -> None:
        """Request what requests of a worker need. The worker is notified when that is done."""
        if self._store is None:
            worker.send(LeasesCame(message.number))
            return
        self._waiting.append((worker, message))
        self._wake.set()

    async def _run(self) -> None:
        tend = time.monotonic() + TEND_SECONDS
        pause = FIRST_PAUSE_S
        while True:
            due = time.monotonic() + pause if self._down else tend
            if self._lenders and not self._down:
                due = min(due, time.monotonic() + GLANCE_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(due - time.monotonic(), 0)):
                    await self._wake.wait()
            self._wake.clear()
            waiting, self._waiting = self._waiting, []
            try:
                if self._down:
                    pause = FIRST_PAUSE_S if await self._look(waiting, due) else min(2 * pause, LAST_PAUSE_S)
                elif waiting:
                    await self._ask_for([want for _, message in waiting for want in message.wants])
                if not self._down and time.monotonic() >= tend:
                    tend = time.monotonic() + TEND_SECONDS
                    await self._tend()
                elif not self._down and self._lenders and time.monotonic() - self._glanced >= GLANCE_SECONDS:
                    self._glanced = time.monotonic()
                    await self._glance()
            except LeaseExpired:
                # It stood still for that long: the store is told first.
                tend = time.monotonic()
            except BudgetFailure as error:
                self._fail(error)
            except Exception:  # task boundary: the next question gets its chance
                logger.exception("leases cannot be maintained")
            finally:
                # Also when this ends in the middle of a question.
                for worker, message in waiting:
                    worker.send(LeasesCame(message.number))

    # -- questions -----------------------------------------------------------------------------------------------------
    async def _ask_for(self, wants: list[LeaseWant]) -> None:
        """Ask for what requests want, and put it where they find it. Raises BudgetFailure."""
        gathered: dict[tuple[str, str, str, str], list[LeaseWant]] = {}
        for want in wants:
            gathered.setdefault(want[:4], []).append(want)
        if 0 < self._fence_ns <= time.monotonic_ns():
            # It stood still: what requests lack may be there.
            await self._hear()
        try:
            await self._ask_gathered(gathered)
        except LeaseExpired:
            await self._hear()
            await self._ask_gathered(gathered)

    async def _ask_gathered(self, gathered: dict[tuple[str, str, str, str], list[LeaseWant]]) -> None:
        now = int(time.time())
        asked: list[tuple[LeasedAccount, LeaseQuestion]] = []
        for (scope, name, window, unit), some in gathered.items():
            account = self._account(scope, name)
            question = account.wants((window, unit), some, now)
            if question is not None:
                asked.append((account, question))
        await self._ask(asked)

    def _account(self, scope: str, name: str) -> LeasedAccount:
        found = self._accounts.get((scope, name))
        if found is None:
            found = self._accounts[scope, name] = LeasedAccount(self._segment, scope, name)
            self._resting.pop((scope, name), None)
        return found

    async def _ask(self, asked: list[tuple[LeasedAccount, LeaseQuestion]]) -> list[LeaseAnswer]:
        assert self._store is not None
        found: list[LeaseAnswer] = []
        for start in range(0, len(asked), MOST_QUESTIONS):
            some = asked[start : start + MOST_QUESTIONS]
            for account, question in some:
                account.asks(question)
            sent = time.monotonic_ns()
            answers = await self._store.ask([question for _, question in some])
            if not self._fence_ns:
                self._set_fence(sent)
            for (account, question), answer in zip(some, answers, strict=True):
                account.took(question, answer)
                if account.lends:
                    self._lenders.add(account)
                else:
                    self._lenders.discard(account)
            found += answers
        return found

    # -- once a second -------------------------------------------------------------------------------------------------
    async def _tend(self, *, end: bool = False) -> None:
        """Give back what nobody uses. Raises BudgetFailure; then what was to be given back is lost, not spent twice."""
        assert self._store is not None
        await self._hear()
        now = int(time.time())
        asked: list[tuple[LeasedAccount, LeaseQuestion]] = []
        for number, one in enumerate(list(self._accounts.values()), 1):
            asked += [(one, question) for question in one.tended(now, end=end)]
            if not number % STEP:
                await asyncio.sleep(0)
        await self._ask(asked)
        for key, one in list(self._accounts.items()):
            if one.idle > IDLE_LOOKS and not one.lends:
                del self._accounts[key]
                self._lenders.discard(one)
                self._resting[key] = None
        while len(self._resting) > MOST_RESTING:
            del self._resting[next(iter(self._resting))]

    async def _glance(self) -> None:
        """Tell the store what it may take back where that has become too much. Raises BudgetFailure."""
        now = int(time.time())
        asked: list[tuple[LeasedAccount, LeaseQuestion]] = []
        for number, one in enumerate(list(self._lenders), 1):
            asked += [(one, question) for question in one.tells(now)]
            if not number % STEP:
                await asyncio.sleep(0)
        await self._ask(asked)

    async def _hear(self) -> None:
        """Be heard by the store, and tell it what it does not know. Raises BudgetFailure."""
        assert self._store is not None
        sent = time.monotonic_ns()
        standing = await self._store.heard()
        now = int(time.time())
        if standing is Standing.LOST:
            logger.warning("the store of leases has lost its data", extra={"store": self._store.place})
            await self._rejoin(now)
        elif standing is Standing.EXPIRED:
            logger.warning("the store of leases does not know this gateway", extra={"store": self._store.place})
            await self._expire(now)
        await self._tell_owed(now)
        self._set_fence(sent)

    def _set_fence(self, sent_ns: int) -> None:
        self._fence_ns = sent_ns + FENCE_NS
        self._state.set_fence(self._fence_ns)

    async def _expire(self, now: int) -> None:
        """Do without what the store has given to others."""
        for number, one in enumerate(list(self._accounts.values()), 1):
            self._owe(one, one.expired(now))
            if not number % STEP:
                await asyncio.sleep(0)
        self._lenders.clear()

    async def _rejoin(self, now: int) -> None:
        """Report to the store all that was leased, including what has been used since."""
        # All that was leased is told anew. What was to be taken again is no part of that.
        self._owed = {
            budget: (one, question._replace(rejoin=0))
            for budget, (one, question) in self._owed.items()
            if question.force
        }
        for one in self._accounts.values():
            self._owe(one, one.rejoins(now))
        for number, key in enumerate(list(self._resting), 1):
            one = LeasedAccount(self._segment, *key)
            found = one.rejoins(now)
            self._owe(one, found)
            if not found:
                del self._resting[key]
            if not number % STEP:
                await asyncio.sleep(0)

    def _owe(self, account: LeasedAccount, questions: list[LeaseQuestion]) -> None:
        """Note what to report to the store: one question for each limit, because it is answered in one call."""
        for question in questions:
            budget = question.budget
            before = self._owed[budget][1] if budget in self._owed else question
            rejoin, force = question.rejoin or before.rejoin, question.force or before.force
            # What is rejoined counts beside the floor, which has it already.
            floor = 0 if rejoin else question.floor
            self._owed[budget] = account, question._replace(rejoin=rejoin, force=force, floor=floor)

    async def _tell_owed(self, now: int) -> None:
        """Report what was not reported yet. Raises BudgetFailure; the rest is reported when the store is back."""
        budgets = [budget for budget in self._owed if budget.end_s > now]
        self._owed = {budget: self._owed[budget] for budget in budgets}
        for start in range(0, len(budgets), MOST_QUESTIONS):
            some = [self._owed[budget] for budget in budgets[start : start + MOST_QUESTIONS]]
            answers = await self._ask(some)
            if any(answer.granted < question.force for (_, question), answer in zip(some, answers, strict=True)):
                raise BudgetFailure("the store has lost its data meanwhile")
            for _, question in some:
                del self._owed[question.budget]

    # -- a store that is away ------------------------------------------------------------------------------------------
    def _fail(self, error: BudgetFailure) -> None:
        if self._store is not None:
            told = {"store": self._store.place, "error": str(error)}
            logger.warning("the store of leases is not reachable", extra=told)
        self._set_down(down=True)

    def _set_down(self, *, down: bool) -> None:
        self._down = down
        for worker in self._workers:
            worker.send(LeaseStoreState(down=down))

    async def _look(self, waiting: list[tuple[WorkerHandle, WantLeases]], due: float) -> bool:
        """Look whether the store is there again, if it is time to; requests do not wait for that."""
        assert self._store is not None
        while waiting:
            worker, message = waiting.pop()
            worker.send(LeasesCame(message.number))
        if time.monotonic() < due:
            return False
        try:
            await self._hear()
        except BudgetFailure:
            return False
        self._set_down(down=False)
        logger.info("the store of leases is reachable again", extra={"store": self._store.place})
        return True

    async def stop(self) -> None:
        """Give back what is left, and end."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        store = self._store
        if store is None:
            return
        if not self._down:
            try:
                await self._tend(end=True)
            except BudgetFailure as error:
                logger.warning("leases could not be returned", extra={"store": store.place, "error": str(error)})
        if self._down:
            self._set_down(down=False)
        self._store = self._settings = None
        for worker, message in self._waiting:
            worker.send(LeasesCame(message.number))
        self._waiting.clear()
        self._state.set_fence(0)
        self._fence_ns = 0
        self._accounts.clear()
        self._lenders.clear()
        self._resting.clear()
        self._owed.clear()
        await store.aclose()
