"""Many changes, one reaction."""

from __future__ import annotations

import asyncio

from headgate.cluster.controller.debounce import MOST_SECONDS, QUIET_SECONDS, Debounce


def test_it_waits_for_quiet() -> None:
    now = [5.0]
    waits: list[float] = []

    async def run() -> None:
        async def sleep(seconds: float) -> None:
            waits.append(round(seconds, 6))
            now[0] += seconds
            if len(waits) < 4:
                now[0] -= seconds / 2
                changes.touch()

        changes = Debounce(lambda: now[0], sleep)
        changes.touch()
        await changes.wait()

    asyncio.run(run())
    assert len(waits) == 4
    assert all(one <= QUIET_SECONDS for one in waits)


def test_changes_without_an_end_are_not_waited_for() -> None:
    now = [5.0]

    async def run() -> None:
        async def sleep(seconds: float) -> None:
            now[0] += seconds
            changes.touch()

        changes = Debounce(lambda: now[0], sleep)
        changes.touch()
        await changes.wait()

    asyncio.run(run())
    assert MOST_SECONDS <= now[0] - 5.0 < MOST_SECONDS + QUIET_SECONDS


def test_it_waits_for_the_next_change() -> None:
    async def run() -> None:
        changes = Debounce()
        changes.touch()
        await changes.wait()
        waiting = asyncio.get_running_loop().create_task(changes.wait())
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        changes.touch()
        await asyncio.wait_for(waiting, 60)

    asyncio.run(run())
