"""Tasks with a name and an owner."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref

import pytest

from headgate.net.tasks import running, spawn, spawner


async def fail() -> None:
    raise ValueError("no")


async def wait(event: asyncio.Event) -> None:
    await event.wait()


def test_both_ways_to_start_own_the_task() -> None:
    async def main() -> None:
        event = asyncio.Event()
        before = set(running())      # those of other tests, which nobody waited for
        tasks = [spawn("b", wait(event)), spawner(asyncio.get_running_loop())("a", wait(event))]
        assert [task.get_name() for task in running() if task not in before] == ["a", "b"]
        event.set()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0)
        assert not set(tasks) & set(running())

    asyncio.run(main())


def test_a_failure_is_logged_under_its_name_and_a_cancellation_is_not(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        start = spawner(asyncio.get_running_loop())
        failed, cancelled = start("bad", fail()), start("left", wait(asyncio.Event()))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(failed, cancelled, return_exceptions=True)
        await asyncio.sleep(0)

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert [getattr(record, "task", None) for record in caplog.records] == ["bad"]


def test_who_keeps_a_task_that_was_cancelled_is_not_kept_by_it() -> None:
    class Keeper:
        async def wait(self) -> None:
            await asyncio.Event().wait()

    async def main() -> None:
        keeper = Keeper()
        keeper.task = spawn("kept", keeper.wait())  # type: ignore[attr-defined]
        gone = weakref.ref(keeper)
        await asyncio.sleep(0)
        keeper.task.cancel()  # type: ignore[attr-defined]
        await asyncio.wait([keeper.task])  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        gc.disable()
        try:
            del keeper
            assert gone() is None
        finally:
            gc.enable()

    asyncio.run(main())
