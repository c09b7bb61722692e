"""The live tasks of an event loop as text: the stack of each task, and under it the tasks that it awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Final

# Deeper chains of awaiting coroutines or tasks are cut off.
MAX_DEPTH: Final = 64
MAX_TASKS: Final = 10_000


def task_trees(tasks: Iterable[asyncio.Task[Any]], prefix: str = "") -> list[str]:
    """Return one text of several lines for every task that no other task awaits, in the order of their names.

    Each text begins with `prefix`. Beyond MAX_TASKS texts only the number of tasks is shown.
    """
    living = sorted((task for task in tasks if not task.done()), key=lambda task: task.get_name())
    awaited = {id(child) for task in living for child in waits_for(task)}
    roots = [task for task in living if id(task) not in awaited]
    # Tasks that await each other in a cycle have no root, but must be shown as well.
    seen: set[int] = set()
    texts: list[str] = []
    for task in [*roots, *living]:
        if id(task) in seen:
            continue
        if len(texts) == MAX_TASKS:
            texts.append(f"{prefix}and more: {len(living)} tasks in all")
            break
        lines = _lines(task, seen, 0)
        texts.append("\n".join([prefix + lines[0], *lines[1:]]))
    return texts


def waits_for(task: asyncio.Task[Any]) -> list[asyncio.Task[Any]]:
    """Return the tasks that the task awaits."""
    waiter = getattr(task, "_fut_waiter", None)
    if isinstance(waiter, asyncio.Task):
        return [waiter]
    # A task in asyncio.gather() waits for a future whose `_children` are the awaited tasks.
    return [child for child in getattr(waiter, "_children", ()) if isinstance(child, asyncio.Task) and not child.done()]


def _lines(task: asyncio.Task[Any], seen: set[int], depth: int) -> list[str]:
    seen.add(id(task))
    found = [f"task {task.get_name()}"]
    indent = "  "
    for frame in frames(task):
        found.append(f"{indent}{frame}")
        indent += "  "
    if depth < MAX_DEPTH:
        for child in waits_for(task):
            if id(child) not in seen:
                found += [indent + line for line in _lines(child, seen, depth + 1)]
    return found


def frames(task: asyncio.Task[Any]) -> list[str]:
    """Return the stack of a task, outermost frame first, as `function (file:line)`.

    The last item may be the object that the task awaits.
    """
    found: list[str] = []
    current: Any = task.get_coro()
    while current is not None and len(found) < MAX_DEPTH:
        name = getattr(current, "__qualname__", None)
        if name is None:
            found.append(f"waits for {type(current).__name__}")
            break
        found.append(f"{name}{_place(current)}")
        current = _awaited(current)
    return found


def _awaited(current: Any) -> Any:
    for field in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(current, field):
            return getattr(current, field)
    return None


def _place(current: Any) -> str:
    """Return ` (file:line)` of a suspended coroutine, or "" for a compiled one, which has no frame."""
    for field in ("cr_frame", "gi_frame", "ag_frame"):
        frame = getattr(current, field, None)
        if frame is not None and getattr(frame, "f_lineno", None) is not None:
            path = PurePath(frame.f_code.co_filename)
            return f" ({'/'.join(path.parts[-2:])}:{frame.f_lineno})"
    return ""
