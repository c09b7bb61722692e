"""Session tables over reloads and workers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.session import SessionIds
from headgate.config.load import TextSource, load
from headgate.pipeline.mcp_sessions import SessionTables, WorkersTally
from headgate_engine.shared.segment import Segment

IDS = SessionIds(bytes(32))


class Worker:
    def __init__(self, segment: Segment, index: int) -> None:
        self.segment, self.index = segment, index


class Server:
    dead = False

    async def stop(self) -> None:
        self.dead = True


def test_each_worker_counts_its_own_and_sees_all() -> None:
    segment = Segment.create()
    first, second = (WorkersTally(Worker(segment, index), 2, "b") for index in (0, 1))  # type: ignore[arg-type]
    first.add(3)
    second.add(2)
    assert (first.total, second.total) == (5, 5)
    again: Any = WorkersTally(Worker(segment, 0), 2, "b")  # type: ignore[arg-type]
    assert (again.total, second.total) == (2, 2), "the process before it is gone with its sessions"
    second.add_living(2)
    assert (first.living, second.living) == (2, 2)
    second.add_processes(3)
    second.add_unfinished(1)
    assert [(one.processes, one.unfinished) for one in (first, second)] == [(3, 1)] * 2
    WorkersTally(Worker(segment, 1), 2, "b")  # type: ignore[arg-type]
    assert (first.total, first.living, first.processes, first.unfinished) == (0, 0, 0, 0)
    assert WorkersTally(Worker(segment, 0), 2, "other").total == 0  # type: ignore[arg-type]


def test_a_reload_changes_limits_and_forgets_no_number() -> None:
    text = "gateways: {default: {port: 3000}}\nconfig: {workerThreads: 1, mcp: {maxSessions: 2}}\n"
    gateway = load(TextSource(text, "c.yaml"), environ={}).gateway
    worker: Any = Worker(Segment.create(), 0)

    async def run() -> None:
        before = SessionTables(worker, gateway, IDS, None)
        table = before.new("b", resumable=False)
        table.add(Server())
        smaller = replace(gateway, process=replace(gateway.process, mcp_max_sessions=1))
        after = SessionTables(worker, smaller, IDS, before)
        beside = after.new("b", resumable=False)
        with pytest.raises(McpFailure, match="1 are open"), beside.room():
            pass
        with table.room():
            pass
        after.apply_limits(table)
        with pytest.raises(McpFailure), table.room():
            pass
        await table.aclose()
        with beside.room():
            pass

    asyncio.run(run())
