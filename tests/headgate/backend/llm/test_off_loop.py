from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from headgate.backend.llm.off_loop import SWITCH_S, off_loop


def test_long_work_runs_in_another_thread_while_the_loop_goes_on() -> None:
    async def main() -> int:
        moved_on = threading.Event()
        asyncio.get_running_loop().call_soon(moved_on.set)

        def work(factor: int, *, more: int) -> int:
            assert moved_on.wait(60)          # set by the loop, which therefore is not held
            return factor * more

        return await off_loop(work, 6, more=7)

    assert asyncio.run(main()) == 42
    assert sys.getswitchinterval() <= SWITCH_S


def test_what_long_work_raises_comes_back() -> None:
    def work() -> None:
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        asyncio.run(off_loop(work))
