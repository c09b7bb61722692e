"""What an operator may ask of all processes: numbers, memory, tasks and profiles."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Final

from headgate.admin.running import DEFAULT_HEAP_RATE
from headgate.server import heap, reports
from headgate.server.worker_pool import WorkerHandle

if TYPE_CHECKING:
    from headgate.server.profiling import CpuProfiler

TASKS_SECONDS: Final = 10.0
MCP_SECONDS: Final = 2.0


class ProcessFigures:
    """Asks the supervisor itself and its workers."""

    def __init__(self) -> None:
        self._workers: list[WorkerHandle] = []
        self._heap_rate = heap.rate_of(os.environ.get(heap.VARIABLE))
        self._profiler: CpuProfiler | None = None

    def _living(self) -> list[WorkerHandle]:
        return [worker for worker in self._workers if worker.ready]

    async def worker_numbers(self) -> list[dict[str, object]]:
        """Return the numbers of each worker by index. A worker that did not answer has an empty entry."""
        return list(await asyncio.gather(*(worker.numbers() for worker in self._workers)))

    async def worker_memory(self) -> list[dict[str, object]]:
        """Return the memory statistics of each worker by index. A worker that did not answer has an empty entry."""
        return list(await asyncio.gather(*(worker.numbers("memory") for worker in self._workers)))

    async def worker_mcp_targets(self) -> list[dict[str, object]]:
        """Return what workers know of the MCP targets that they have called, one entry for each worker and target."""
        told = await asyncio.gather(*(_mcp_targets(worker) for worker in self._living()))
        return [entry for one in told for entry in one]

    async def sample_heap(self, rate: int) -> None:
        """Sample the allocations of all processes, on average one for each `rate` bytes; 0 stops sampling."""
        self._heap_rate = rate
        heap.switch(rate)
        await asyncio.gather(*(worker.sample_heap(rate) for worker in self._workers))

    async def heap_profile(self) -> bytes:
        """Return a gzipped profile.proto of the allocations of all processes. It is empty while sampling is off."""
        return await heap.heap_profile(await self._heap_reports(), self._heap_rate, DEFAULT_HEAP_RATE)

    async def heap_totals(self) -> dict[str, int] | None:
        """Return the totals of the samples, None while sampling is off."""
        return heap.totals(text for _, _, text in await self._heap_reports()) if self._heap_rate else None

    async def _heap_reports(self) -> list[tuple[str, int, bytes]]:
        found = [("supervisor", os.getpid(), heap.report())]
        if self._heap_rate:
            for worker in self._living():
                assert worker.process is not None
                with contextlib.suppress(ConnectionError, TimeoutError):
                    text = await worker.ask_long("heap", TASKS_SECONDS)
                    found.append((f"worker {worker.index}", worker.process.pid, text))
        return found

    async def tasks(self) -> dict[str, list[str]]:
        """Return the live tasks of the supervisor (`admin`) and of all workers (`workload`), a text for each tree."""
        own = reports.tasks()
        answers = await asyncio.gather(*(worker.tasks(TASKS_SECONDS) for worker in self._workers))
        return {"admin": own, "workload": [text for answer in answers for text in answer]}

    async def cpu_profile(self, seconds: int, frequency: int) -> bytes:
        """Return a CPU profile (profile.proto) of all processes, with `frequency` samples per second. Raises
        ProfileError."""
        from headgate.server.profiling import CpuProfiler, ProfiledProcess, permit_here  # a start need not load it

        targets = [ProfiledProcess("supervisor", os.getpid(), permit_here, seldom=True)]
        for worker in self._living():
            assert worker.process is not None
            targets.append(ProfiledProcess(f"worker {worker.index}", worker.process.pid, worker.permit))
        if self._profiler is None:
            self._profiler = CpuProfiler()
        return await self._profiler.profile(targets, seconds, frequency)

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [worker.process.pid for worker in self._workers if worker.process is not None]


async def _mcp_targets(worker: WorkerHandle) -> list[dict[str, object]]:
    try:
        found: list[dict[str, object]] = json.loads(await worker.ask_long("mcp", MCP_SECONDS))
    except (ConnectionError, TimeoutError):
        return []
    return found
