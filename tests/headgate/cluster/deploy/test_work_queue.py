"""The queue of work on keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.end_to_end.running import PATIENCE

from headgate.cluster.deploy import work_queue
from headgate.cluster.deploy.work_queue import WorkQueue
from headgate.cluster.snapshot import ObjectKey

A, B = ObjectKey("edge", "a"), ObjectKey("edge", "b")


def on_queue(work: Callable[[ObjectKey], Awaitable[None]], steps: Callable[[WorkQueue], Awaitable[None]]) -> None:
    async def whole() -> None:
        queue = WorkQueue("test", work)
        running = asyncio.get_running_loop().create_task(queue.run())
        async with asyncio.timeout(PATIENCE):
            await steps(queue)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert queue._timers == {}

    asyncio.run(whole())


def test_a_key_that_comes_again_while_it_is_worked_on_is_worked_on_again_afterwards() -> None:
    begun: list[ObjectKey] = []
    side_by_side: list[int] = []
    under_way = 0
    done = asyncio.Event()

    async def work(key: ObjectKey) -> None:
        nonlocal under_way
        under_way += key == A
        side_by_side.append(under_way)
        begun.append(key)
        if begun.count(A) == 1 and key == A:
            queues[0].add(A)
            queues[0].add(A)
            queues[0].add(B)
        await asyncio.sleep(0)
        under_way -= key == A
        if begun.count(A) == 2 and B in begun:
            done.set()

    queues: list[WorkQueue] = []

    async def steps(queue: WorkQueue) -> None:
        queues.append(queue)
        queue.add(A)
        await done.wait()

    on_queue(work, steps)
    assert sorted(begun) == [A, A, B]
    assert max(side_by_side) == 1


def test_what_fails_is_tried_until_it_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[int] = []
    monkeypatch.setattr(work_queue, "delay_after", lambda failures: delays.append(failures) or 0.0)
    done = asyncio.Event()
    tries = 0

    async def work(key: ObjectKey) -> None:
        nonlocal tries
        tries += 1
        if tries == 5:
            done.set()
            return
        raise ValueError("not yet") if tries % 2 else OSError("not yet")

    async def steps(queue: WorkQueue) -> None:
        queue.add(A)
        await done.wait()

    on_queue(work, steps)
    assert delays == [1, 2, 3, 4]


def test_a_key_is_not_made_to_wait_by_another_that_hangs() -> None:
    done = asyncio.Event()

    async def work(key: ObjectKey) -> None:
        if key == A:
            await asyncio.Event().wait()
        done.set()

    async def steps(queue: WorkQueue) -> None:
        queue.add(A)
        queue.add(B)
        await done.wait()

    on_queue(work, steps)


def test_nothing_begins_while_it_is_held() -> None:
    begun: list[ObjectKey] = []
    done = asyncio.Event()

    async def work(key: ObjectKey) -> None:
        begun.append(key)
        done.set()

    async def steps(queue: WorkQueue) -> None:
        queue.hold(True)
        queue.add(A)
        for _ in range(20):
            await asyncio.sleep(0)
        assert begun == []
        queue.hold(False)
        await done.wait()

    on_queue(work, steps)
    assert begun == [A]
