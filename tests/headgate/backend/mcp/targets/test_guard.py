"""What servers started does not outlive the worker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from headgate.backend.mcp.targets.guard import GroupGuard


@pytest.fixture
def group() -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    """`group()` starts a process in a group of its own that ends only when it is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def ended(process: subprocess.Popen[bytes]) -> int:
    return process.wait(40)


def test_groups_are_killed_when_the_pipe_closes_and_released_ones_are_not(group) -> None:
    guard = GroupGuard()
    watched, released = group(), group()

    async def run() -> None:
        await asyncio.gather(guard.watch(watched.pid), guard.watch(released.pid))
        guard.release(released.pid)

    asyncio.run(run())
    assert watched.poll() is None
    guard.close()
    assert ended(watched) == -signal.SIGKILL
    time.sleep(0.1)
    assert released.poll() is None


def test_the_guarding_process_is_no_child_of_ours(group) -> None:
    guard = GroupGuard()
    process = group()
    before = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    asyncio.run(guard.watch(process.pid))
    after = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, text=True).stdout
    # ps itself is a child each time.
    assert len(before.split()) == len(after.split())
    guard.close()
    ended(process)


def test_a_guard_that_was_killed_is_replaced_and_told_everything(group) -> None:
    guard = GroupGuard()
    first, second = group(), group()

    async def run() -> None:
        await guard.watch(first.pid)
        # What its death looks like from here: nobody reads the pipe any more.
        guard.close()
        await guard.watch(second.pid)

    asyncio.run(run())
    ended(first)
    assert second.poll() is None
    guard.close()
    assert ended(second) == -signal.SIGKILL
