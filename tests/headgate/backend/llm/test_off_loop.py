from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from headgate.backend.llm.off_loop import SWITCH_S, off_loop
from headgate.net.tasks import spawn


def test_long_work_runs_in_another_thread_while_the_loop_goes_on() -> None:
    async def main() -> int:
        moved_on = threading.Event()
        asyncio.get_running_loop().call_soon(moved_on.set)

        def work(factor: int, *, more: int) -> int:
            assert moved_on.wait(60)          # set by the loop, which therefore is not held
            return factor * more

        return await off_loop(work, 6, more=7)

    assert asyncio.run(main()) == 42


def test_what_long_work_raises_comes_back() -> None:
    def work() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(off_loop(work))


def test_threads_are_switched_often_while_there_is_long_work_and_only_then() -> None:
    before = sys.getswitchinterval()
    seen: list[float] = []
    all_here, go_on = threading.Barrier(3), threading.Event()

    def work() -> None:
        seen.append(sys.getswitchinterval())
        all_here.wait(60)
        assert go_on.wait(60)

    async def main() -> None:
        first, second = (spawn(f"work {number}", off_loop(work)) for number in range(2))
        await asyncio.to_thread(all_here.wait, 60)
        # One who does not wait any more does not end the work.
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_S)
        go_on.set()
        await second

    asyncio.run(main())
    restored = threading.Event()

    async def another() -> None:
        await off_loop(restored.set)

    asyncio.run(another())
    assert seen == [pytest.approx(SWITCH_S)] * 2
    assert restored.is_set()
    for _ in range(60_000):                   # the thread notes the end of its work right behind its result
        if sys.getswitchinterval() == before:
            break
        threading.Event().wait(0.001)
    assert sys.getswitchinterval() == before
