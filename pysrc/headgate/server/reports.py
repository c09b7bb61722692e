"""Reports of a process that the operator can ask for, besides metrics."""

from __future__ import annotations

import asyncio
import json


def long_report(what: str, index: int) -> bytes:
    """Return a report of worker `index`: `tasks` is a JSON list of texts, `heap` is described in server/heap.py.

    Raises ValueError for another report.
    """
    match what:
        case "tasks":
            return json.dumps(tasks(f"worker {index} ")).encode()
        case "heap":
            from headgate.server.heap import report

            return report()
        case _:
            raise ValueError(f"no report {what!r}")


def memory() -> dict[str, object]:
    """Return the memory statistics of this process."""
    from headgate.admin.memory import of_process

    return of_process()


def tasks(prefix: str = "") -> list[str]:
    """Return the live tasks of this process as texts that begin with `prefix`."""
    from headgate.net.task_tree import task_trees

    return task_trees(asyncio.all_tasks(), prefix)
