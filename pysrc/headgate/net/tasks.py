"""Tasks with a name and an owner: the only way to start one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger("headgate.tasks")

# The loop keeps weak references only; a task nobody holds may vanish in mid-air.
_running: set[asyncio.Task[Any]] = set()


def spawn(name: str, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task; its failure is logged under `name`, cancellation is not a failure."""
    return _owned(asyncio.get_running_loop().create_task(coro, name=name))


def spawner(loop: asyncio.AbstractEventLoop) -> Callable[[str, Coroutine[Any, Any, Any]], asyncio.Task[Any]]:
    """Return a spawn() for that loop alone: to ask for the running one costs a system call (Python 3.11)."""

    def spawn_there(name: str, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return _owned(loop.create_task(coro, name=name))

    return spawn_there


def _owned(task: asyncio.Task[Any]) -> asyncio.Task[Any]:
    _running.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        logger.error("task failed", extra={"task": task.get_name()}, exc_info=error)


def running() -> list[asyncio.Task[Any]]:
    """Return the tasks under way, oldest name first."""
    return sorted(_running, key=lambda task: task.get_name())
