"""Leases from a real Redis server: as from PostgreSQL, and after it has lost its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.redis_rig import RedisServer, needs_redis
from tests.headgate.telemetry.spend import budget_store_rig as rig

from headgate.document.secret import Secret
from headgate.ir.shared_state import SharedState
from headgate.policy.shared.budgets import MOST_EXPIRED, RedisBudgets
from headgate.telemetry.spend.budgets import BudgetFailure, LeaseQuestion, Standing

pytestmark = needs_redis


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


def redis_settings(redis: RedisServer) -> SharedState:
    return SharedState(url=Secret(f"redis://127.0.0.1:{redis.port}/0"), place="redis", timeout_ms=30_000)


def silence(redis: RedisServer) -> None:
    """Have the server believe that no gateway was heard for 11 seconds."""
    for member in redis.ask("ZRANGE", "headgate:budget-gateways", "0", "-1").split():
        redis.ask("ZINCRBY", "headgate:budget-gateways", "-11000", member)


class Each:
    """Has its calls made by a store of the loop that makes them: connections belong to one loop. What it knows stays."""

    def __init__(self, redis: RedisServer) -> None:
        self._settings = redis_settings(redis)
        self._known: dict[str, Any] = {}

    async def _with(self, call: str, *arguments: Any) -> Any:
        store = RedisBudgets(self._settings)
        vars(store).update(self._known)
        try:
            return await getattr(store, call)(*arguments)
        finally:
            self._known = {name: getattr(store, name) for name in ("_epoch", "_holder", "_begun")}
            await store.aclose()

    async def ask(self, questions: Any) -> Any:
        return await self._with("ask", questions)

    async def heard(self) -> Any:
        return await self._with("heard")


def test_leases(redis: RedisServer) -> None:
    store = Each(redis)
    for check in (rig.check_grants, rig.check_floor, rig.check_windows, rig.check_large, rig.check_many):
        check(store)
    assert rig.heard(store) is Standing.KNOWN


def test_what_a_silent_gateway_had_lent_is_taken_back(redis: RedisServer) -> None:
    rig.check_expiry(Each(redis), Each(redis), lambda: silence(redis))
    # Nothing is left of names that are not used any more.
    one = Each(redis)
    assert rig.heard(one) is Standing.KNOWN
    silence(redis)
    other = Each(redis)
    assert [rig.heard(other) for _ in range(8)] == [Standing.KNOWN] * 8
    assert redis.ask("ZCARD", "headgate:budget-gateways") == "1"


def test_all_of_many_limits_is_taken_back(redis: RedisServer) -> None:
    """Of more limits than a page of the server's table has, also when the first pages are empty by then."""
    places = [rig.budget(str(number)) for number in range(1500)]

    async def lent() -> list[int]:
        store = RedisBudgets(redis_settings(redis))
        await store.ask([LeaseQuestion(one, most=100, least=60, total=60, lent=60) for one in places])
        await store.aclose()
        silence(redis)
        other = RedisBudgets(redis_settings(redis))
        # The script takes back about MOST_EXPIRED entries of a call.
        for _ in range(2 * len(places) // MOST_EXPIRED):
            await other.heard()
        answers = await other.ask([LeaseQuestion(one, most=100) for one in places])
        await other.aclose()
        return [answer.left for answer in answers]

    assert asyncio.run(lent()) == [100] * len(places)
    assert redis.ask("ZCARD", "headgate:budget-gateways") == "1"


def test_several_gateways_at_once(redis: RedisServer) -> None:
    rig.check_at_once([Each(redis) for _ in range(4)])


def test_windows_end_in_the_store(redis: RedisServer) -> None:
    rig.asker(Each(redis), rig.budget("k"))(least=1, total=1, lent=1)
    [key] = [one for one in redis.ask("KEYS", "headgate:budget:*").splitlines() if one]
    assert 86400 < int(redis.ask("TTL", key)) <= 86400 + 3600
    # What a gateway has lent is there as long as any window, however long nobody is there to take it back.
    [lent] = [one for one in redis.ask("KEYS", "headgate:budget-lent:*").splitlines() if one]
    assert int(redis.ask("TTL", lent)) > 31 * 86400


def test_a_server_without_its_memory_is_told_what_was_leased_before_it_gives_more(redis: RedisServer) -> None:
    one, other, place = Each(redis), Each(redis), rig.budget("lost")
    assert rig.asker(one, place)(least=40, total=40) == (40, 60)
    assert rig.asker(other, place)(least=50, total=50) == (50, 10)
    redis.ask("FLUSHALL")
    # The first question of a gateway that knew the server tells it; nothing is granted.
    assert rig.asker(one, place)(least=40, total=40) == (0, 0)
    assert rig.heard(one) is Standing.LOST
    assert rig.heard(one) is Standing.KNOWN
    assert rig.asker(one, place)(most=0, rejoin=40) == (0, 0)
    assert rig.asker(one, place)(least=40, total=40)[0] == 0
    assert rig.heard(other) is Standing.LOST
    assert rig.asker(other, place)(most=0, rejoin=50) == (0, 0)
    redis.ask("DEL", "headgate:budget-settling")
    assert rig.asker(one, place)(least=11, total=11, floor=40) == (0, 10)
    assert rig.asker(one, place)(least=10, total=10, floor=40) == (10, 0)


def test_a_server_that_is_away_is_told(redis: RedisServer) -> None:
    store = Each(redis)
    redis.kill()
    for call in (store.ask([LeaseQuestion(rig.budget())]), store.ask([])):
        with pytest.raises(BudgetFailure):
            asyncio.run(call)
