"""The leases of a gateway: what requests want is asked for once, what nobody uses is given back, what was overspent is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.headgate.server.lease_store_rig import Memory

from headgate.ir.virtual_keys import VirtualKeys
from headgate.net.tasks import spawn
from headgate.policy.leases import LeaseWant
from headgate.server import leases
from headgate.server.control import LeasesCame, LeaseStoreState, WantLeases
from headgate.server.leases import LeaseKeeper
from headgate.telemetry.spend.budgets import BudgetFailure
from headgate_drivers.account import lacks_at, reserve_at, settle_at
from headgate_engine.limit.account import LeaseState, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment

MICRO = 10**6


class Worker:
    """What the keeper sees of a worker."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.on_wants: Callable[..., None] | None = None

    def send(self, message: Any) -> None:
        self.told.put_nowait(message)


def gateway_of(keys: VirtualKeys | None) -> Any:
    process = type("Process", (), {"shared_state": None, "request_log": None})
    return type("Gateway", (), {"virtual_keys": keys, "process": process})()


class Rig:
    """A keeper with a worker, and the limits of one key: 100 tokens and 100 micro-dollars a day."""

    def __init__(self) -> None:
        self.store = Memory()
        self.segment = Segment.create(state_bytes=4 << 20)
        self.keeper = LeaseKeeper(self.segment, lambda settings: self.store)
        self.worker = Worker()
        self.state = LeaseState(self.segment)
        self.state.configure(True, False)
        self.limits = UsageLimits(
            UsageAccount(self.segment, "key", "k"), [("day", "tokens", 100, -1), ("day", "dollars", 100 * MICRO, -1)], self.state
        )
        self.number = 0

    async def __aenter__(self) -> Rig:
        await self.prepare(VirtualKeys(leases="postgres"))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.keeper.stop()

    async def prepare(self, keys: VirtualKeys | None) -> None:
        await self.keeper.prepare(gateway_of(keys), [self.worker])  # type: ignore[list-item]

    async def forget(self, keys: VirtualKeys | None) -> None:
        await self.keeper.forget(gateway_of(keys))

    async def want(self, *wants: tuple[str, int, int]) -> Any:
        """Ask for (unit, least, total), and return what the worker is told."""
        self.number += 1
        most = {"tokens": 100, "dollars": 100 * MICRO}
        found = tuple(LeaseWant("key", "k", "day", unit, least, total, most[unit]) for unit, least, total in wants)
        assert self.worker.on_wants is not None
        self.worker.on_wants(self.worker, WantLeases(self.number, found))
        return await self.worker.told.get()

    def left(self, unit: str = "tokens") -> int:
        return self.limits.account.terms("day", unit, int(time.time()))[2]

    def taken(self, unit: str = "tokens") -> int:
        return sum(amount for budget, amount in self.store.taken.items() if budget.unit == unit)


def run(test: Callable[[Rig], Any], monkeypatch: pytest.MonkeyPatch, tend: float = 1e6) -> None:
    monkeypatch.setattr(leases, "TEND_SECONDS", tend)

    async def inside() -> None:
        async with asyncio.timeout(60), Rig() as rig:
            await test(rig)

    asyncio.run(inside())


def test_what_is_wanted_is_leased_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        assert lacks_at(rig.limits, 10, 1_500_000, now)
        assert await rig.want(("tokens", 10, 30), ("dollars", 1_500_000, 1_500_000)) == LeasesCame(1)
        # Money is leased in whole millionths of a dollar.
        assert (rig.left(), rig.left("dollars"), rig.taken("dollars")) == (30, 2 * MICRO, 2)
        assert reserve_at(rig.limits, 10, 1_500_000, now) is None
        # What is there already is not asked for again, and only what is missing otherwise.
        await rig.want(("tokens", 20, 20))
        assert len(rig.store.asked) == 2
        await rig.want(("tokens", 5, 25))
        assert (rig.store.asked[-1].least, rig.store.asked[-1].total, rig.left()) == (0, 5, 25)
        # What is not there is refused for a while without a question.
        await rig.want(("tokens", 95, 95))
        assert rig.left() == 25

    run(test, monkeypatch)


def test_all_of_a_limit_can_be_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        for _ in range(14):
            await rig.want(("tokens", 7, 7))
            assert reserve_at(rig.limits, 7, 0, now) is None
            settle_at(rig.limits, (7, 0), (7, 0), now)
        await rig.want(("tokens", 7, 7))
        assert reserve_at(rig.limits, 7, 0, now) is not None
        assert rig.taken() <= 100
        await rig.keeper._tend()
        await rig.want(("tokens", 2, 2))
        assert reserve_at(rig.limits, 2, 0, now) is None
        settle_at(rig.limits, (2, 0), (2, 0), now)

    run(test, monkeypatch)


def test_what_nobody_uses_goes_back_and_what_was_overspent_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 10, 60))
        assert reserve_at(rig.limits, 20, 0, now) is None
        await rig.keeper._tend()
        # What is reserved stays.
        assert (rig.left(), rig.taken()) == (0, 20)
        settle_at(rig.limits, (20, 0), (95, 0), now)
        assert rig.left() == -75
        await rig.keeper._tend()
        assert (rig.left(), rig.taken()) == (0, 95)
        await rig.want(("tokens", 6, 6))
        assert lacks_at(rig.limits, 6, 0, now) is False
        # Of what is used fast some is kept, for the requests to come.
        for _ in range(leases.IDLE_LOOKS + 2):
            await rig.keeper._tend()
        assert rig.keeper._accounts == {}

    run(test, monkeypatch)


def test_the_keeper_looks_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        await rig.want(("tokens", 10, 60))
        await rig.store.given_back.wait()
        assert (rig.left(), rig.taken()) == (0, 0)

    run(test, monkeypatch, tend=0.01)


def test_all_is_given_back_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 10, 60))
        assert reserve_at(rig.limits, 20, 0, now) is None
        settle_at(rig.limits, (20, 0), (20, 0), now)
        # Workers hold limits against leases until the configuration without a store is in force.
        await rig.prepare(None)
        await rig.want(("tokens", 70, 70))
        assert (rig.left(), rig.store.closed) == (70, False)
        await rig.forget(None)
        assert (rig.taken(), rig.store.closed) == (20, True)
        assert await rig.want(("tokens", 1, 1)) == LeasesCame(3)
        await rig.prepare(VirtualKeys(leases="postgres"))
        await rig.forget(VirtualKeys(leases="postgres"))
        await rig.want(("tokens", 80, 80))
        assert rig.left() == 80

    run(test, monkeypatch)


def test_workers_are_told_of_a_store_that_is_away_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        rig.store.away = True
        assert await rig.want(("tokens", 10, 10)) == LeaseStoreState(down=True)
        assert await rig.worker.told.get() == LeasesCame(1)
        # Nobody waits for it meanwhile.
        assert await rig.want(("tokens", 10, 10)) == LeasesCame(2)
        await rig.prepare(VirtualKeys(leases="postgres"))
        assert await rig.worker.told.get() == LeaseStoreState(down=True)
        rig.store.away = False
        assert await rig.worker.told.get() == LeaseStoreState(down=False)
        await rig.want(("tokens", 10, 10))
        assert rig.left() == 10

    run(test, monkeypatch)


def test_a_store_that_has_lost_its_memory_is_told_what_was_leased(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 10, 60))
        assert reserve_at(rig.limits, 60, 0, now) is None
        rig.store.taken.clear()
        rig.store.forgot = True
        await rig.keeper._tend()
        assert rig.taken() == 60

    run(test, monkeypatch)


def test_a_store_is_told_what_was_leased_of_accounts_that_nobody_uses_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 60, 60))
        assert reserve_at(rig.limits, 60, 0, now) is None
        settle_at(rig.limits, (60, 0), (60, 0), now)
        for _ in range(leases.IDLE_LOOKS + 3):
            await rig.keeper._tend()
        assert rig.keeper._accounts == {}
        for _ in range(2):
            rig.store.taken.clear()
            rig.store.forgot = True
            await rig.keeper._tend()
            assert rig.taken() == 60
        await rig.want(("tokens", 1, 1))
        assert not rig.keeper._resting

    run(test, monkeypatch)


def test_the_store_is_told_what_requests_under_way_have_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 60, 60))
        assert reserve_at(rig.limits, 40, 0, now) is None
        await rig.keeper._tend()
        assert (list(rig.store.lent.values()), rig.taken()) == ([40], 40)
        # What is settled is told at once where the store would take it back, otherwise with the next look.
        settle_at(rig.limits, (10, 0), (3, 0), now)
        asked = len(rig.store.asked)
        await rig.keeper._glance()
        assert (len(rig.store.asked), list(rig.store.lent.values())) == (asked + 1, [30])
        await rig.keeper._glance()
        assert len(rig.store.asked) == asked + 1
        settle_at(rig.limits, (30, 0), (0, 0), now)
        await rig.keeper._tend()
        assert list(rig.store.lent.values()) == [0]
        assert not rig.keeper._lenders

    run(test, monkeypatch)


def test_a_gateway_that_was_silent_does_without_and_takes_again_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 60, 60))
        assert reserve_at(rig.limits, 50, 0, now) is None
        await rig.keeper._tend()
        settle_at(rig.limits, (20, 0), (8, 0), now)
        # It is cut off: what it had lent is not spent any more, and then the store takes it back.
        rig.keeper._set_fence(time.monotonic_ns() - leases.FENCE_NS)
        assert lacks_at(rig.limits, 1, 0, now)
        rig.store.expire()
        assert rig.taken() == 0
        await rig.want(("tokens", 5, 5))
        assert rig.store.asked[-2].force == 38
        # 8 were spent, 30 are under way, and 5 are wanted.
        assert (rig.taken(), rig.left()) == (43, 5)
        assert reserve_at(rig.limits, 5, 0, now) is None

    run(test, monkeypatch)


def test_one_that_stood_still_between_two_questions_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        await rig.want(("tokens", 10, 10))
        rig.store.silent = True
        await rig.want(("tokens", 20, 20))
        assert (rig.left(), rig.store.silent) == (20, False)
        # A look that finds it out is the same.
        assert reserve_at(rig.limits, 20, 0, int(time.time())) is None
        rig.store.silent = True
        await rig.keeper._tend()
        assert rig.taken() == 20

    run(test, monkeypatch)


def test_what_a_store_without_its_memory_could_not_be_told_at_once_is_told_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        await rig.keeper._ask_for([LeaseWant("key", str(number), "day", "tokens", 1, 1, 100) for number in range(100)])
        # It is told twice: the second time it has lost that of the first call again.
        for _ in range(2):
            rig.store.taken.clear()
            rig.store.forgot, rig.store.lasts = True, 1
            with pytest.raises(BudgetFailure):
                await rig.keeper._hear()
            assert rig.taken() == leases.MOST_QUESTIONS
        rig.store.lasts = None
        await rig.keeper._hear()
        assert rig.taken() == 100
        await rig.keeper._hear()
        assert rig.taken() == 100

    run(test, monkeypatch)


@pytest.mark.parametrize("again", ["slow", "silent", "forgot", "blank"])
def test_what_is_taken_again_is_told_later_where_the_store_fails(again: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        now = int(time.time())
        await rig.want(("tokens", 50, 50))
        assert reserve_at(rig.limits, 50, 0, now) is None
        await rig.keeper._tend()
        rig.store.expire()
        rig.store.lasts = 0
        for _ in range(2):
            with pytest.raises(BudgetFailure):
                await rig.keeper._hear()
            # What becomes of the store until it is heard again, and fails again.
            rig.store.lasts = 0 if again != "blank" else None
            rig.store.silent, rig.store.forgot, rig.store.blank = again == "silent", again == "forgot", again == "blank"
        settle_at(rig.limits, (50, 0), (30, 0), now)
        rig.store.lasts, rig.store.blank = None, False
        # The first look keeps as much as was used of late.
        for _ in range(2):
            await rig.keeper._tend()
        assert (rig.taken(), rig.left()) == (30, 0)

    run(test, monkeypatch)


def test_who_waits_for_a_store_that_is_changed_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        rig.store.hangs = asyncio.Event()
        want = spawn("want", rig.want(("tokens", 10, 10)))
        await rig.store.hangs.wait()
        await rig.keeper.stop()
        assert await want == LeasesCame(1)

    run(test, monkeypatch)


def test_many_accounts_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(rig: Rig) -> None:
        for number in range(5 * leases.STEP):
            rig.keeper._account("key", str(number))
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = spawn("count", count())
        await rig.keeper._tend()
        counting.cancel()
        assert turns >= 5

    run(test, monkeypatch)
