"""What every store of leases has to do: the same questions at PostgreSQL and at Redis."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from headgate.telemetry.spend.budgets import Budget, LeaseAnswer, LeaseExpired, LeaseQuestion, Standing

Ask = Callable[..., LeaseAnswer]


def budget(name: str = "k", unit: str = "tokens", start_s: int | None = None) -> Budget:
    start = int(time.time()) if start_s is None else start_s
    return Budget("key", name, "day", unit, start, start + 86400)


def asker(store: Any, place: Budget) -> Ask:
    def ask(**more: int) -> LeaseAnswer:
        [found] = asyncio.run(store.ask([LeaseQuestion(place, **{"most": 100, **more})]))
        answer: LeaseAnswer = found
        return answer

    return ask


def check_grants(store: Any) -> None:
    ask = asker(store, budget("grants"))
    assert ask(least=10, total=10) == (10, 90)
    # A quarter of what is left beyond what is wanted, at most.
    assert ask(least=10, total=10, extra=5) == (15, 75)
    assert ask(least=5, total=35, extra=1000) == (45, 30)
    # The rest goes to those that it is enough for.
    assert ask(least=40, total=60) == (0, 30)
    assert ask(least=20, total=60) == (30, 0)
    assert ask(least=1, total=1) == (0, 0)
    assert ask(back=12) == (0, 12)
    assert ask(least=12, total=12) == (12, 0)
    # What was spent beyond the limit is taken whatever is there.
    assert ask(force=7) == (7, 0)
    assert ask(back=10) == (0, 3)


def check_floor(store: Any) -> None:
    """What a gateway knows to be spent is taken, also of a limit that the store does not know yet."""
    ask = asker(store, budget("floor"))
    assert ask(least=10, total=10, floor=60) == (10, 30)
    assert ask(least=5, total=5, floor=60) == (5, 25)
    assert ask(least=1, total=1, floor=90) == (1, 9)
    # One that gives back what others have spent meanwhile gives nothing back.
    assert ask(back=50, floor=91) == (0, 9)
    assert ask(most=0, floor=91) == (0, 0)


def check_windows(store: Any) -> None:
    now = int(time.time())
    for place in (budget("w", start_s=now), budget("w", start_s=now + 86400), budget("w", "dollars", now), budget("v", start_s=now)):
        assert asker(store, place)(least=100, total=100) == (100, 0)


def check_large(store: Any) -> None:
    """Nine billion dollars, in millionths."""
    ask = asker(store, budget("large", "dollars"))
    most = 9 * 10**15
    assert ask(most=most, least=1, total=most - 3) == (most - 3, 3)
    assert ask(most=most, least=1, total=1) == (1, 2)
    assert ask(most=most, back=most - 5) == (0, most - 3)


def check_at_once(stores: list[Any]) -> None:
    """What several gateways get at the same time is never more than there is, and all of it in the end."""
    place = budget("race")

    async def run() -> int:
        async def one(store: Any) -> int:
            got = 0
            for _ in range(40):
                [answer] = await store.ask([LeaseQuestion(place, most=1000, least=7, total=7)])
                got += answer.granted
            return got

        return sum(await asyncio.gather(*(one(store) for store in stores)))

    got = asyncio.run(run())
    assert got <= 1000
    assert got == min(1000 // 7 * 7, 40 * 7 * len(stores))


def check_expiry(store: Any, other: Any, silence: Callable[[], None]) -> None:
    """What a gateway had lent is there again when it was silent; the rest is not. `silence` has all been silent."""
    now = int(time.time())
    place, another, old, later = budget("expiry"), budget("another"), budget("old", start_s=now), budget("old", start_s=now + 86400)
    first, second = asker(store, place), asker(other, place)
    assert first(least=60, total=60, lent=50) == (60, 40)
    assert first(lent=30) == (0, 40)
    assert asker(store, another)(least=10, total=10, lent=10) == (10, 90)
    # Of a window that is over nothing is taken back from the one that runs.
    assert asker(store, old)(least=10, total=10, lent=9) == (10, 90)
    assert asker(store, later)(least=10, total=10, lent=2) == (10, 90)
    assert second(least=10, total=10, lent=10) == (10, 30)
    assert second(lent=0) == (0, 30)
    assert (heard(store), heard(other)) == (Standing.KNOWN, Standing.KNOWN)
    assert second(least=31, total=31) == (0, 30)
    silence()
    # One that was silent is told so, before it is answered.
    assert heard(other) is Standing.EXPIRED
    assert heard(other) is Standing.KNOWN
    assert second(least=61, total=61) == (0, 60)
    assert second(least=60, total=60) == (60, 0)
    assert asker(other, another)() == (0, 100)
    assert asker(other, old)() == (0, 90)
    assert asker(other, later)() == (0, 92)
    for _ in range(2):
        with pytest.raises(LeaseExpired):
            first(least=1, total=1)
    assert heard(store) is Standing.EXPIRED
    assert first(force=30) == (30, 0)
    assert heard(store) is Standing.KNOWN


def heard(store: Any) -> Standing:
    found: Standing = asyncio.run(store.heard())
    return found


def check_many(store: Any) -> None:
    places = [budget(f"m{at}") for at in range(64)]
    found = asyncio.run(store.ask([LeaseQuestion(one, most=at, least=3, total=3) for at, one in enumerate(places)]))
    assert found == [(3 if at >= 3 else 0, at - 3 if at >= 3 else at) for at in range(64)]
    assert asyncio.run(store.ask([])) == []
