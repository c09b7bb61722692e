"""The supervisor: configuration, sockets, workers, signals and the operator's servers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headgate.admin.history import TrafficHistory
from headgate.admin.running import RunningGateway
from headgate.admin.servers import AdminServers
from headgate.config.load import FileSource, Loaded, LoadErrors
from headgate.config.source_reader import SourceReader
from headgate.errors import ConfigErrors
from headgate.ir.gateway import Gateway
from headgate.net.tasks import spawn
from headgate.pipeline.modules import needed_modules
from headgate.pipeline.slices import in_slices
from headgate.server.config_warnings import warn
from headgate.server.control import Drain
from headgate.server.failures import ReloadFailed, WorkerLost
from headgate.server.first_load import FirstLoad
from headgate.server.library_pages import drop_steps
from headgate.server.metrics_push import MetricsPush
from headgate.server.reload_meter import ReloadMeter
from headgate.server.service_manager import ServiceManager
from headgate.server.stored_resources import Confirm, ResourceKeeper, unconfirmed
from headgate.server.template_handle import TemplateHandle
from headgate.server.traces import TraceWatch
from headgate.server.transfer import store_for
from headgate.server.upgrade import Upgradable
from headgate.server.watch import Fingerprint, changes
from headgate.server.watchdog import Watchdog
from headgate.telemetry.levels import Directives
from headgate.telemetry.metrics import series_key
from headgate.telemetry.series import series_limit
from headgate_engine.shared.counters import Gauge
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.config.resources.stored import ResourceChange, Written
    from headgate.server.delivery import Delivery, Feed

logger = logging.getLogger("headgate.supervisor")

# How long a reload waits, each time, for the successor of a worker that was lost in it.
LOST_PAUSES = (0.5, 1.0, 2.0, 4.0)
# Whoever writes a file in place empties it first, and a full disk leaves it so.
BLANK = "the configuration is empty (write {} for an empty configuration)"
# How long a drain waits for a change of configuration that is under way.
SETTLE_SECONDS = 5.0
# How much longer than the drain deadline a worker may take before it is killed.
KILL_MARGIN_SECONDS = 2.0
# How long an upgrade leaves what is in flight to the old process: nobody waits for the end of that.
UPGRADE_DRAIN_MS = 3_600_000


class Supervisor(Upgradable):
    """One gateway process tree. `first` is the configuration that it starts with, `template` what `workers` workers are
    forked from.

    `folder` contains the sockets over which workers reach each other.
    """

    def __init__(
        self, reader: SourceReader, first: FirstLoad, segment: Segment, folder: str, template: TemplateHandle,
        workers: int,
    ) -> None:  # fmt: skip
        loaded = first.loaded
        super().__init__(loaded, segment, template, workers)
        self.source = reader.source
        self._reader = reader
        self._loaded = loaded
        self._watched = loaded.watched_files
        self._read_from = first.files
        self._stop_count = 0
        self._reloads = ReloadMeter(segment)
        self._generation_gauge = Gauge(segment, series_key("gw_config_generation", {}))
        self._stopped: asyncio.Event = asyncio.Event()
        self._resources = ResourceKeeper(self.source, segment, lambda: self._loaded, self.reload)
        self._delivery: Delivery | None = None
        self._drain_ends = 0.0
        self._following: asyncio.Task[None] | None = None
        self._running = running = RunningGateway(self)
        self._history = TrafficHistory(running)
        running.points = self._history.points
        self._admin = AdminServers(running, folder)
        self._metrics = MetricsPush(running, self._living)
        self._service = ServiceManager(os.environ)
        self._watchdog = Watchdog(
            segment, self._workers, lambda: self.gateway, self._catch_up, running.pending, self._service.alive
        )

    # -- life ----------------------------------------------------------------------------------------------------------
    async def run(self) -> int:
        """Serve until stopped; return the exit status."""
        loop = asyncio.get_running_loop()
        for sig in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(sig, self._on_signal, sig)
        loop.add_signal_handler(signal.SIGUSR2, self._on_upgrade)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
            loop.add_signal_handler(signal.SIGHUP, self._on_hangup, os.isatty(0))
        try:
            self._take_sockets()
            await self._start_workers(self.gateway)
            if self._heap_rate:
                await self.sample_heap(self._heap_rate)
            async with self._reload_lock:
                await self._begin()
            self._resources.follow(self.gateway)
            self._sockets.settle()
            await self._admin.start(self.gateway.process)
        except (ReloadFailed, OSError) as error:
            self._stop_workers()
            print(f"headgate: cannot start: {error}", file=sys.stderr)
            if self._predecessor is not None:
                self._predecessor.refuse(f"cannot start: {error}")
            await self.records.stop()
            return 1
        if self._predecessor is not None:
            await self._predecessor.take_over(self._sockets.taken)
        logger.info(
            "gateway is ready",
            extra={"generation": self.generation, "workers": len(self._workers), "ports": self._port_list()},
        )
        self._service.ready(self._status())
        tasks = [
            spawn("watch", self._watch(self._read_from)), spawn("watchdog", self._watchdog.run()),
            spawn("metrics", self._metrics.run()), spawn("history", self._history.run()),
        ]  # fmt: skip
        if self._delivery is not None:
            self._following = spawn("delivery", self._delivery.run(self.segment))
        await in_slices(drop_steps())
        await self._stopped.wait()
        for task in tasks:
            task.cancel()
        self._resources.stop()
        await self._admin.stop()
        return 0

    def follow(self, feed: Feed) -> None:
        """Take parts of the configuration from a feed, once the gateway runs."""
        from headgate.server.delivery import Delivery  # most configurations are files

        self._delivery = Delivery(feed, self._reader, self._renew, self._reload_lock, self._running.pending)

    async def _begin(self) -> None:
        """Put the first configuration into force, without the delivered parts that keep it from that."""
        while True:
            try:
                return await self._install(self.gateway)
            except ReloadFailed as error:
                if isinstance(error, WorkerLost) or self._delivery is None or not self._delivery.refused(error):
                    raise
            self._loaded = await asyncio.to_thread(self._reader.load)
            self.gateway = self._loaded.gateway

    @property
    def _delivered(self) -> bool:
        return self._delivery is not None

    def _status(self) -> str:
        ports, workers = len(self.gateway.binds), len(self._workers)
        return f"serves {ports} ports with {workers} workers, configuration {self.generation}{self._reloads.status}"

    def _port_list(self) -> str:
        return ",".join(bind.address for bind in self.gateway.binds)

    # -- configurations ------------------------------------------------------------------------------------------------
    async def _install(self, gateway: Gateway, confirm: Confirm | None = None) -> None:
        """Apply a configuration in every worker, or in none. What `confirm` raises, when all are prepared, is a reason
        for none.
        """
        async with self._worker_lock:
            await self._apply(gateway, confirm)

    async def _apply(self, gateway: Gateway, confirm: Confirm | None) -> None:
        generation = self.generation + 1
        await self._mount(gateway)
        opened = self._sockets.open(gateway)
        self.segment.limit_series(series_limit(gateway))
        # A worker that begins from now on has them from the template.
        before = self.gateway if self.generation else None
        self._template.modules = tuple(sorted({*self._template.modules, *needed_modules(gateway, before)}))
        errors: list[str] = []
        failure: Exception = ReloadFailed("")
        config_fd = -1
        try:
            workers = self._watchdog.answering([worker for worker in self._workers if worker.alive()])
            if not workers:
                raise ConnectionError("no worker is running")
            for worker in workers:
                await worker.wait_ready()
            config_fd = await store_for(gateway, [worker.inherited for worker in workers], before)
            await self.records.prepare(gateway, workers)
            await self._identity.prepare(gateway, workers)
            errors = await self._prepare(generation, config_fd, workers)
            failure = ReloadFailed("; ".join(errors))
            if not errors and confirm is not None:
                errors, failure = await unconfirmed(confirm)
        except (ConnectionError, TimeoutError) as error:
            errors = [str(error) or "a worker did not answer in time"]
            failure = WorkerLost(errors[0])
        finally:
            if config_fd >= 0:
                os.close(config_fd)
        if errors:
            for worker in self._workers:
                worker.discard(generation)
            self._close_sockets(opened)
            # What goes on running keeps the request log that it had.
            await self.records.prepare(self.gateway, [worker for worker in self._workers if worker.ready])
            raise failure
        self.generation = generation
        self.gateway = gateway
        self.segment.begin_generation()
        results = await asyncio.gather(*(worker.commit(generation) for worker in workers), return_exceptions=True)
        for worker, result in zip(workers, results, strict=True):
            if result is not None:
                # Another worker takes its place, with this configuration.
                logger.error("worker did not apply the change", extra={"worker": worker.index, "error": str(result)})
                worker.kill()
        for worker in self._workers:
            worker.stale = worker not in workers
        self.segment.sweep()
        self._identity.forget(gateway)
        self._generation_gauge.set(generation)
        self._reloads.in_force()
        self._close_sockets(self._sockets.by_key.keys() - {bind.key for bind in gateway.binds})
        await self.records.forget(gateway)

    async def _mount(self, gateway: Gateway) -> None:
        try:
            await self._admin.mount(gateway)
        except OSError as error:
            raise ReloadFailed(f"admin page: {error}") from error

    def _close_sockets(self, keys: Iterable[str]) -> None:
        closed = self._sockets.close(keys)
        for worker in self._workers:
            worker.given -= closed

    async def reload(self) -> None:
        """Read the source again and apply it. On failure, logs the reason and keeps the running configuration."""
        with self._service.reloading(self._status):
            for pause in LOST_PAUSES:
                try:
                    return await self._reload()
                except WorkerLost as error:
                    told = {"error": str(error)}
                    logger.warning("a worker died during a reload, which is tried again", extra=told)
                await asyncio.sleep(pause)
            await self._reload(last=True)

    async def _reload(self, last: bool = False) -> None:
        async with self._reload_lock:
            if self._stopping:
                return
            try:
                await self._renew()
            except (ConfigErrors, ReloadFailed, OSError) as error:
                if isinstance(error, WorkerLost):
                    if not last:
                        raise
                    self._reloads.failed()
                for line in str(error).splitlines():
                    logger.error("Failed to reload config", extra={"error": line, "generation": self.generation})

    async def _renew(self) -> None:
        """Read the source and apply it, under the lock. Raises ConfigErrors, ReloadFailed, OSError."""
        if self._stopping:
            raise ReloadFailed("the gateway ends")
        self._reloads.begin()
        try:
            loaded = await asyncio.to_thread(self._reader.load)
            same = loaded.gateway.digest == self.gateway.digest
            if same:
                if self._reloads.unchanged():
                    logger.info("configuration repaired: it is already in force", extra={"generation": self.generation})
            else:
                if loaded.blank and self.gateway.binds:
                    raise ReloadFailed(BLANK)
                await self._install(loaded.gateway)
        except (ConfigErrors, ReloadFailed, OSError) as error:
            if not isinstance(error, WorkerLost):
                self._reloads.failed()
            if isinstance(error, LoadErrors):
                self._watched = error.watched_files or self._watched
            raise
        before = self._loaded
        self._took(loaded)
        if not same:
            warn(loaded, before)
            logger.info("configuration reloaded", extra={"generation": self.generation, "ports": self._port_list()})

    def _took(self, loaded: Loaded) -> None:
        self._loaded = loaded
        self._watched = loaded.watched_files
        self._resources.follow(loaded.gateway)

    async def change_resources(self, change: ResourceChange) -> Written:
        """Apply a change of stored resources and store it, or neither. Raises CandidateRefused where workers refuse it,
        and what ResourceKeeper.change() raises.
        """
        from headgate.config.resources.stored import CandidateRefused

        for pause in (*LOST_PAUSES, 0.0):
            try:
                async with self._reload_lock:
                    if self._stopping:
                        raise CandidateRefused("the gateway ends")
                    return await self._resources.change(change, self._install_candidate)
            except WorkerLost as error:
                if not pause:
                    raise CandidateRefused(str(error)) from None
            except ReloadFailed as error:
                raise CandidateRefused(str(error)) from None
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _install_candidate(self, loaded: Loaded, confirm: Confirm) -> None:
        if loaded.gateway.digest == self.gateway.digest:
            await confirm()
            self._reloads.unchanged()
        else:
            self._reloads.begin()
            await self._install(loaded.gateway, confirm)
            logger.info("configuration reloaded", extra={"generation": self.generation, "ports": self._port_list()})
        warn(loaded, self._loaded)
        self._took(loaded)

    async def _watch(self, before: Fingerprint) -> None:
        if not isinstance(self.source, FileSource) or self.source.is_stream:
            return
        async for _ in changes(lambda: self._watched, start=before):
            try:
                await self.reload()
            except Exception:  # task boundary: the next change gets its chance
                self._reloads.failed()
                logger.exception("Failed to reload config", extra={"generation": self.generation})

    # -- workers -------------------------------------------------------------------------------------------------------
    async def watch_trace(self, expression: str | None) -> TraceWatch:
        """Return a watcher of the next matching request. Raises TooManyWatchers or BadExpression."""
        return await self._traces.watch(expression, self.gateway.frontend.max_buffer_bytes)

    def trace_watchers(self) -> int:
        """Return the number of watchers that wait for a request."""
        return self._traces.waiting

    async def set_levels(self, text: str, reset: bool) -> str:
        """Change the log directives of all processes; return the result when all use it. Raises BadDirective,
        UnknownModule."""
        levels = Directives(self._start_levels if reset else str(self.levels))
        if text:
            levels.add(text)
            Directives(text).refuse_unknown()
        self.levels = levels
        levels.apply()
        form = self.gateway.process.log_format
        await asyncio.gather(*(worker.set_levels(str(levels), form) for worker in self._workers))
        return str(levels)

    # -- the end -------------------------------------------------------------------------------------------------------
    def _on_signal(self, sig: signal.Signals) -> None:
        self._stop_count += 1
        if self._stop_count > 1 and sig == signal.SIGINT:
            logger.warning("stopped at once by a second interrupt")
            self._stop_workers()
            os._exit(0)
        self.stop(signal.Signals(sig).name)

    def _on_hangup(self, terminal: bool) -> None:
        """Handle SIGHUP: stop if the terminal was closed; without a terminal, reload the configuration."""
        if terminal:
            self.stop("SIGHUP")
        elif isinstance(self.source, FileSource) and not self.source.is_stream:
            spawn("reload", self.reload())

    def stop(self, why: str) -> None:
        """Drain and exit; further calls do nothing."""
        if not self._stopping:
            self._stopping = True
            logger.info("draining", extra={"reason": why})
            self._service.stopping()
            if self._successor is not None:
                self._successor.process.kill()
            spawn("drain", self._drain())
        elif self._handed and not self._hurried:
            # What an upgrade has left to this process gets the time that any end gives it.
            self._hurried = True
            logger.info("draining faster", extra={"reason": why})
            self._send_drain()

    async def _drain(self) -> None:
        self._traces.drain()
        self._admin.stop_accepting()
        # A configuration on its way is brought in first: a worker that is told to drain before it accepts would leave
        # what waits at its port unanswered. Kept from now on, so that no other begins.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._reload_lock.acquire()
                await self._worker_lock.acquire()
        self._send_drain()
        # Workers hold their own descriptors: with ours closed, a port ends when its last worker stops accepting.
        self._close_sockets(self._sockets.by_key.keys())
        while any(worker.alive() for worker in self._workers):
            if asyncio.get_running_loop().time() > self._drain_ends:
                logger.warning("workers did not stop in time and are killed")
                break
            await asyncio.sleep(0.02)
        self._stop_workers()
        self._identity.stop()
        await self.records.stop()
        logger.info("stopped")
        self._stopped.set()

    def _send_drain(self) -> None:
        """Have the workers drain, with the time that they have for it."""
        settings = self.gateway.process
        least, longest = settings.min_termination_ms, max(settings.max_termination_ms, settings.min_termination_ms)
        if self._handed:
            least, longest = 0, longest if self._hurried else max(longest, UPGRADE_DRAIN_MS)
        self._last_order = Drain(least, longest, self._handed)
        for worker in self._workers:
            worker.send(self._last_order)
        self._drain_ends = asyncio.get_running_loop().time() + longest / 1000 + KILL_MARGIN_SECONDS
