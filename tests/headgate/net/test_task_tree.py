"""Live tasks as text."""

from __future__ import annotations

import asyncio

from headgate.net.task_tree import task_trees
from headgate.net.tasks import spawn


async def inner(event: asyncio.Event) -> None:
    await event.wait()


async def outer(event: asyncio.Event) -> None:
    await inner(event)


def test_a_task_shows_its_calls_down_to_what_it_waits_for() -> None:
    async def main() -> None:
        event = asyncio.Event()
        task = spawn("reload", outer(event))
        await asyncio.sleep(0)
        (text,) = task_trees([task], "worker 1: ")
        lines = text.splitlines()
        assert lines[0] == "worker 1: task reload"
        assert lines[1].startswith("  outer (net/test_task_tree.py:")
        assert lines[2].startswith("    inner (net/test_task_tree.py:")
        assert lines[3].startswith("      Event.wait (asyncio/locks.py:")
        assert "waits for" in lines[4]
        event.set()
        await task
        assert task_trees([task]) == []

    asyncio.run(main())


def test_tasks_that_are_waited_for_are_below_who_waits() -> None:
    async def main() -> None:
        event = asyncio.Event()

        async def both() -> None:
            await asyncio.gather(spawn("a", outer(event)), spawn("b", inner(event)))

        async def single() -> None:
            await below

        below = spawn("below", inner(event))
        tasks = [spawn("both", both()), spawn("single", single()), below]
        await asyncio.sleep(0.01)
        mine = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        first, second = task_trees(mine)
        assert first.startswith("task both\n")
        assert "\n    task a\n" in first.replace("      task", "    task")
        assert "task b\n" in first
        assert second.startswith("task single\n")
        assert "task below\n" in second
        event.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_circle_is_shown_once() -> None:
    async def main() -> None:
        tasks: list[asyncio.Task[None]] = []

        async def wait_for_other(index: int) -> None:
            await tasks[1 - index]

        tasks += [spawn(f"t{i}", wait_for_other(i)) for i in range(2)]
        await asyncio.sleep(0.01)
        (text,) = task_trees(tasks)
        assert text.count("task t") == 2

    # Not asyncio.run(): it would cancel the tasks, and cancelling goes round the circle for ever.
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    loop.run_until_complete(main())
    loop.close()
