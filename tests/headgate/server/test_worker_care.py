"""The replacement of a worker, beside the end of the gateway."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.net.tasks import spawn
from headgate.server.control import Drain
from headgate.server.worker_care import WorkerCare


class SlowWorker:
    """A worker that is started when it is told to, and that ends when it is told to drain."""

    index = 0
    linked = False

    def __init__(self) -> None:
        self.starts, self.go = asyncio.Event(), asyncio.Event()
        self.told: list[Any] = []
        self.ready = self.killed = False

    def restart_delay(self) -> float:
        return 0.0

    def kill(self) -> None:
        self.killed = True

    async def start(self, form: str, levels: str) -> None:
        self.killed = False
        self.starts.set()
        await self.go.wait()

    def send(self, message: Any) -> None:
        self.told.append(message)

    async def wait_ready(self) -> None:
        if self.told:
            raise ConnectionError("worker 0 died")
        self.ready = True


def care() -> Any:
    """What a restart needs."""
    found: Any = object.__new__(WorkerCare)
    found.generation, found._stopping, found._last_order, found._heap_rate = 1, False, None, 0
    found._reload_lock, found._worker_lock = asyncio.Lock(), asyncio.Lock()
    found.gateway = SimpleNamespace(process=SimpleNamespace(log_format="text"))
    found.levels = ""
    found.configured = []

    async def readmit(worker: Any) -> None:
        pass

    async def give(worker: Any) -> None:
        found.configured.append(worker)

    found._traces = SimpleNamespace(readmit=readmit)
    found._give_configuration = give
    return found


@pytest.mark.parametrize("late", [False, True])
def test_a_worker_that_starts_when_the_others_have_been_told_to_drain_is_told_as_well(
    late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that it would accept, with an old configuration, beside the process that has taken over."""

    async def check() -> None:
        mine, worker = care(), SlowWorker()
        again: list[str] = []

        def note(name: str, work: Any) -> None:
            again.append(name)
            work.close()

        monkeypatch.setattr("headgate.server.worker_care.spawn", note)
        restart = spawn("restart", mine._restart(worker))
        await worker.starts.wait()
        order = Drain(0, 1000, frozenset({"a"}))
        if late:
            mine._stopping, mine._last_order = True, order
        worker.go.set()
        await restart
        assert worker.told == ([order] if late else [])
        assert mine.configured == ([] if late else [worker])
        assert (worker.ready, worker.killed) == (not late, late)
        assert again == (["restart worker 0"] if late else [])

    asyncio.run(check())


def test_while_an_upgrade_holds_the_configuration_a_worker_is_replaced() -> None:
    async def check() -> None:
        mine, worker = care(), SlowWorker()
        worker.go.set()
        async with mine._reload_lock:
            await mine._restart(worker)
        assert mine.configured == [worker]

    asyncio.run(check())


def test_before_the_first_configuration_a_replacement_waits_for_it() -> None:
    async def check() -> None:
        mine, worker = care(), SlowWorker()
        mine.generation = 0
        worker.go.set()
        async with mine._reload_lock:
            restart = spawn("restart", mine._restart(worker))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not worker.starts.is_set()
        await restart
        assert mine.configured == [worker]

    asyncio.run(check())
