"""Deadlines: a heap against a sorted list, and the clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_drivers.requests import PythonTimer
from headgate_engine.link.timers import TimerQueue

MS = 1_000_000


async def until(condition: Callable[[], object]) -> None:
    """Wait, at most as long as a busy machine may need."""
    for _ in range(8000):
        if condition():
            return
        await asyncio.sleep(0.005)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["arm", "disarm", "remove"]), st.integers(0, 7), st.integers(-2, 12)), max_size=60
)


@settings(max_examples=40, deadline=None)
@given(ACTIONS)
def test_timers_fire_once_in_order_and_only_when_armed(actions: list[tuple[str, int, int]]) -> None:
    async def run() -> None:
        queue = TimerQueue(asyncio.get_running_loop())
        fired: list[int] = []
        due: dict[int, int] = {}
        timers = [PythonTimer(queue, lambda _now, number=number: fired.append(number)) for number in range(8)]
        start = time.monotonic_ns()
        for verb, number, milliseconds in actions:
            if verb == "arm":
                due[number] = start + milliseconds * MS
                timers[number].arm(due[number])
            else:
                due.pop(number, None)
                getattr(timers[number], verb)()
        await until(lambda: len(fired) >= len(due))
        await asyncio.sleep(0.02)          # one that fires too often, or was not armed, would do so by now
        assert sorted(fired) == sorted(due)
        assert len(set(fired)) == len(fired)
        queue.close()
        assert len(queue) == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


def test_a_timer_that_raises_does_not_stop_the_others(caplog) -> None:  # type: ignore[no-untyped-def]
    async def run() -> list[str]:
        queue = TimerQueue(asyncio.get_running_loop())
        fired: list[str] = []
        now = time.monotonic_ns()
        PythonTimer(queue, lambda _now: 1 // 0).arm(now + 2 * MS)
        PythonTimer(queue, lambda _now: fired.append("other")).arm(now + 3 * MS)
        await until(lambda: fired)
        return fired

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run()) == ["other"]
    assert "timer failed" in caplog.text


def test_a_deadline_moves_without_firing_early() -> None:
    async def run() -> float:
        queue = TimerQueue(asyncio.get_running_loop())
        done = asyncio.get_running_loop().create_future()
        timer = PythonTimer(queue, lambda _now: done.set_result(time.monotonic_ns()))
        start = time.monotonic_ns()
        for step in range(1, 30):
            timer.arm(start + step * 2 * MS)
        timer.arm(start + 40 * MS)
        return (await done - start) / MS

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(run()) >= 40
