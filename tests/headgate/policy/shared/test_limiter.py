"""How a worker asks the store: in one call what comes in one turn, once for all who wait, and not while it is away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from headgate.document.secret import Secret
from headgate.ir.policies import LocalRateLimit
from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import StoreFailure
from headgate.net.tasks import spawn
from headgate.policy.shared.limiter import SharedLimiter
from headgate.policy.shared.script import CHARGE, LEASE, RETURN, TAKE, Question
from headgate_engine.shared.segment import Segment

HOUR_US = 3600 * 1_000_000


class Store:
    """Grants what is asked for; `fails`: it does not answer."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[bytes, Question]]] = []
        self.fails = False
        self.closed = False
        self.pings = 0

    async def run(self, keys: Sequence[bytes], values: Sequence[int]) -> list[int]:
        questions = [Question(*values[at : at + 11]) for at in range(1, len(values), 11)]
        self.calls.append(list(zip(keys, questions, strict=True)))
        await asyncio.sleep(0)
        if self.fails:
            raise StoreFailure("away")
        found: list[int] = []
        for one in questions:
            found += [one.number if one.operation in (TAKE, LEASE) else 0, 50, 0, HOUR_US, len(self.calls), 7]
        return found

    async def ping(self) -> None:
        self.pings += 1
        if self.fails:
            raise StoreFailure("away")

    async def aclose(self) -> None:
        self.closed = True


def limit(name: str = "a", most: int = 100, *, tokens: bool = False) -> LocalRateLimit:
    return LocalRateLimit(key=name, max_tokens=most, tokens_per_fill=most, fill_interval_ns=3600 * 10**9, tokens=tokens)


async def until(condition: Callable[[], bool]) -> None:
    while True:
        if condition():
            return
        await asyncio.sleep(0.01)


def run(work: Callable[[SharedLimiter, Store], Coroutine[Any, Any, None]], **settings: Any) -> None:
    async def inside() -> None:
        segment, store = Segment.create(state_bytes=1 << 20, series_bytes=1 << 20), Store()
        place = SharedState(url=Secret("redis://h"), place="h:6379", **settings)
        limiter = SharedLimiter(place, segment, spawn, store)  # type: ignore[arg-type]
        await work(limiter, store)
        await limiter.aclose()
        assert store.closed

    asyncio.run(inside())


def test_all_who_wait_share_a_lease() -> None:
    async def work(limiter: SharedLimiter, store: Store) -> None:
        bucket = limiter.bucket(limit(most=1000))
        assert bucket.share == 100
        waiting = [limiter.asked(bucket) for _ in range(3)]
        assert bucket.asking
        assert await asyncio.gather(*waiting) == [100, 100, 100]
        [[(key, question)]] = store.calls
        assert (key, question.operation, question.number) == (b"headgate:a", LEASE, 100)
        await asyncio.sleep(0)
        assert not bucket.asking
        limiter.want(bucket)
        await limiter.asked(bucket)
        assert len(store.calls) == 2
        assert store.calls[1][0][1][7:9] == (7, 1), "what is known of the store"

    run(work)


def test_what_comes_in_one_turn_is_one_call() -> None:
    async def work(limiter: SharedLimiter, store: Store) -> None:
        buckets = tuple(limiter.bucket(limit(name)) for name in "ab")
        found = await asyncio.gather(*(limiter.decided(buckets) for _ in range(40)))
        assert [len(call) for call in store.calls] == [64, 16]
        assert [one.joined for _, one in store.calls[0][:4]] == [0, 1, 0, 1]
        assert found[0] is not None
        assert [one[:3] for one in found[0]] == [(True, 100, 50), (True, 100, 50)]

    run(work)


def test_a_store_that_is_away_is_asked_again_by_nobody_but_the_look_out(caplog: pytest.LogCaptureFixture) -> None:
    async def work(limiter: SharedLimiter, store: Store) -> None:
        bucket, account = limiter.bucket(limit()), limiter.bucket(limit("t", tokens=True))
        store.fails = True
        assert await limiter.decided((bucket,)) is None
        assert limiter.state.down
        calls = len(store.calls)
        assert await limiter.asked(bucket) is None
        assert await limiter.asked(account) is None
        assert len(store.calls) == calls
        await until(lambda: store.pings >= 2)
        store.fails = False
        await until(lambda: not limiter.state.down)
        assert await limiter.asked(bucket) == 10
        assert [record.levelname for record in caplog.records].count("WARNING") == 1

    run(work)


def test_the_window_is_told_only_by_those_who_deny() -> None:
    def told(failure: str) -> int:
        found: list[int] = []

        async def work(limiter: SharedLimiter, store: Store) -> None:
            bucket = limiter.bucket(limit())
            await limiter.asked(bucket)
            await asyncio.sleep(0)
            await limiter.asked(bucket)
            found.append(store.calls[1][0][1].rest_us)

        run(work, failure=failure)
        return found[0]

    assert told("local") == 0
    assert 0 < told("deny") <= HOUR_US


def test_an_account_is_charged_once() -> None:
    async def work(limiter: SharedLimiter, store: Store) -> None:
        account = limiter.bucket(limit("t", tokens=True))
        await limiter.asked(account)
        account.unreport(18)
        store.fails = True
        await asyncio.sleep(0)
        assert await limiter.asked(account) is None
        assert account.owes, "nobody knows whether it was counted: it is told again"
        store.fails = False
        await until(lambda: not account.owes)
        charged = [one.number for call in store.calls for _, one in call if one.operation == CHARGE]
        assert charged[0] == 0
        assert set(charged[1:]) <= {0, 18}
        assert 18 in charged

    run(work)


def test_leases_are_returned_at_the_end() -> None:
    stores: list[Store] = []

    async def work(limiter: SharedLimiter, store: Store) -> None:
        stores.append(store)
        bucket = limiter.bucket(limit())
        await limiter.asked(bucket)
        bucket.take_at(1, 1)

    run(work)
    [store] = stores
    assert [(one.operation, one.back) for _, one in store.calls[-1]] == [(RETURN, 9)]
