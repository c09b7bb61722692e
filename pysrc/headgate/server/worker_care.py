"""The workers of a supervisor: started, given their configuration, and replaced when they die."""

from __future__ import annotations

import asyncio
import logging
import os

from headgate.config.load import Loaded
from headgate.ir.gateway import Gateway
from headgate.net.tasks import spawn
from headgate.server.bound_sockets import BoundSockets
from headgate.server.control import Drain
from headgate.server.figures import ProcessFigures
from headgate.server.request_log import RequestLog
from headgate.server.template_handle import TemplateHandle
from headgate.server.traces import TraceHub
from headgate.server.transfer import store_for
from headgate.server.worker_pool import PREPARE_SECONDS, WorkerHandle, WorkerSecrets, session_key
from headgate.server.workload_identity import WorkloadIdentityKeeper
from headgate.telemetry.levels import Directives
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.loads import WorkerLoads
from headgate_engine.shared.segment import Segment

logger = logging.getLogger("headgate.supervisor")


class WorkerCare(ProcessFigures):
    """What a supervisor knows of its workers. `loaded` is the first configuration, `template` what `workers` workers
    are forked from.
    """

    def __init__(self, loaded: Loaded, segment: Segment, template: TemplateHandle, workers: int) -> None:
        super().__init__()
        self.gateway: Gateway = loaded.gateway
        self.generation = 0
        self.segment = segment
        self.levels = Directives(start_levels(loaded.gateway))
        self._start_levels = str(self.levels)
        self._template = template
        self._secrets = WorkerSecrets(session_key(loaded.gateway))
        self._worker_count = workers
        self._loads = WorkerLoads(segment, workers) if workers > 1 else None
        self._sockets = BoundSockets()
        self._stopping = False
        # What the workers were told at the end.
        self._last_order: Drain | None = None
        # Of whoever changes the configuration or takes the place of this process. An upgrade may hold it for minutes.
        self._reload_lock = asyncio.Lock()
        # Of whoever starts workers or gives them a configuration; taken behind the other, where both are.
        self._worker_lock = asyncio.Lock()
        self._restarts = Counter(segment, series_key("gw_worker_restarts_total", {}))
        self._traces = TraceHub(segment, self._living)
        self.records = RequestLog(segment)
        self._identity = WorkloadIdentityKeeper(self._living, segment)

    async def _start_workers(self, gateway: Gateway) -> None:
        while len(self._workers) < self._worker_count:
            worker = WorkerHandle(len(self._workers), self._template, self._sockets.by_key, self._on_death)
            await worker.start(gateway.process.log_format, str(self.levels))
            self._workers.append(worker)

    def _stop_workers(self) -> None:
        self._stopping = True
        self._template.kill()
        for worker in self._workers:
            worker.kill()

    async def _prepare(self, generation: int, config_fd: int, workers: list[WorkerHandle]) -> list[str]:
        """Have workers compile a configuration. Return their errors. Raises ConnectionError or TimeoutError."""
        modules = self._template.modules
        if not self.generation:
            answers = await asyncio.gather(
                *(worker.prepare(generation, config_fd, self._secrets, modules) for worker in workers)
            )
            return sorted({error for answer in answers for error in answer})
        # One after the other, so that the others have the cores for their traffic.
        for worker in workers:
            errors = await worker.prepare(generation, config_fd, self._secrets, modules)
            if errors:
                return sorted(errors)
        return []

    def _on_death(self, worker: WorkerHandle) -> None:
        if self._stopping:
            return
        status = worker.ended()
        if self._loads is not None:
            self._loads.reset(worker.index)
        self._traces.worker_died()
        logger.error("worker died", extra={"worker": worker.index, "status": status})
        self._restarts.add()
        spawn(f"restart worker {worker.index}", self._restart(worker))

    async def _restart(self, worker: WorkerHandle) -> None:
        await asyncio.sleep(worker.restart_delay())
        if not self.generation:
            async with self._reload_lock:  # the first configuration is on its way
                pass
        async with self._worker_lock:
            if self._stopping:
                return
            worker.kill()
            try:
                await worker.start(self.gateway.process.log_format, str(self.levels))
                if self._last_order is not None:
                    # The drain did not wait for this start any longer: another process may have the ports.
                    worker.send(self._last_order)
                await worker.wait_ready()
                if self._heap_rate:
                    await worker.sample_heap(self._heap_rate)
                # Before its first request.
                await self._traces.readmit(worker)
                await self._give_configuration(worker)
            except OSError as error:  # ConnectionError and TimeoutError among them
                logger.error("worker cannot be restarted", extra={"worker": worker.index, "error": str(error)})
                worker.kill()
                if not worker.linked:
                    spawn(f"restart worker {worker.index}", self._restart(worker))
                return
            logger.info("worker restarted", extra={"worker": worker.index, "generation": self.generation})

    async def _give_configuration(self, worker: WorkerHandle) -> None:
        """Have one worker run what the others do. Raises OSError."""
        config_fd = await store_for(self.gateway, [worker.inherited])
        try:
            await self.records.prepare(self.gateway, [worker])
            await self._identity.prepare(self.gateway, [worker])
            errors = await worker.prepare(self.generation, config_fd, self._secrets, self._template.modules)
        finally:
            os.close(config_fd)
        if errors:
            raise ConnectionError("; ".join(errors))
        await worker.commit(self.generation)

    async def _catch_up(self, worker: WorkerHandle) -> None:
        async with self._worker_lock:
            try:
                # What it was asked while it stood still is answered before this.
                await worker.ask("numbers", PREPARE_SECONDS)
                await self._give_configuration(worker)
            except OSError as error:
                logger.error("worker cannot catch up", extra={"worker": worker.index, "error": str(error)})
                worker.send_kill()
            else:
                logger.info("worker has caught up", extra={"worker": worker.index, "generation": self.generation})


def start_levels(gateway: Gateway) -> str:
    """Return the log directive at start: RUST_LOG, else `config.logging.level`."""
    return os.environ.get("RUST_LOG") or gateway.process.log_level
