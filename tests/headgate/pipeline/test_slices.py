"""Long work in slices: what a thread does of it is done before it goes on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator

import pytest

from headgate.pipeline.slices import at_once, in_slices


def work(threads: list[threading.Thread | str]) -> Generator[Callable[[], object] | None, None, str]:
    yield
    yield lambda: threads.append(threading.current_thread())
    threads.append("behind it")
    yield
    return "done"


def test_calls_run_in_a_thread_before_the_work_goes_on() -> None:
    threads: list[threading.Thread | str] = []
    assert asyncio.run(in_slices(work(threads))) == "done"
    assert threads[1:] == ["behind it"]
    assert threads[0] is not threading.main_thread()


def test_without_a_loop_calls_run_where_the_work_does() -> None:
    threads: list[threading.Thread | str] = []
    assert at_once(work(threads)) == "done"
    assert threads == [threading.main_thread(), "behind it"]


def test_what_a_call_raises_ends_the_work() -> None:
    def failing() -> Generator[Callable[[], object], None, None]:
        yield lambda: 1 / 0

    with pytest.raises(ZeroDivisionError):
        asyncio.run(in_slices(failing()))
    with pytest.raises(ZeroDivisionError):
        at_once(failing())
