"""Starting asyncio tasks. Each task has a name, is referenced until it ends, and its failure is logged."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger("headgate.tasks")

# The event loop holds only weak references, so a task without another reference may be collected before it ends
# (https://docs.python.org/3/library/asyncio-task.html#asyncio.create_task).
_running: set[asyncio.Task[Any]] = set()


def spawn(name: str, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task and return it. A failure is logged with `name`; cancellation is not a failure."""
    return _owned(asyncio.get_running_loop().create_task(coro, name=name))


def spawner(loop: asyncio.AbstractEventLoop) -> Callable[[str, Coroutine[Any, Any, Any]], asyncio.Task[Any]]:
    """Return a spawn() that is bound to one loop. It avoids get_running_loop(), a system call in Python 3.11."""

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
        # The task keeps the exception. That knows the frames that it went through, and one of them often knows who
        # keeps the task. The collector of CPython 3.11 does not see that ring; result() takes the exception out of it.
        with contextlib.suppress(asyncio.CancelledError):
            task.result()
        return
    error = task.exception()
    if error is not None:
        logger.error("task failed", extra={"task": task.get_name()}, exc_info=error)


def running() -> list[asyncio.Task[Any]]:
    """Return the running tasks, sorted by name."""
    return sorted(_running, key=lambda task: task.get_name())
