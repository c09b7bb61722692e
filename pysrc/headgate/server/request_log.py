"""The request log in the supervisor: one gatherer, and a pipe to it from each worker."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from headgate.ir.gateway import Gateway
from headgate.ir.virtual_keys import KeyRecord, KeyTeam
from headgate.server.spend import SpendKeeper
from headgate.server.worker_pool import WorkerHandle
from headgate.telemetry.metrics import series_key
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:  # a database costs memory that a gateway without a request log need not have
    from headgate.server.alerts import AlertWatch
    from headgate.server.leases import LeaseKeeper
    from headgate.telemetry.requests.writer import Gatherer

FAMILY: Final = "gw_request_log_records_total"
# What may lie in a pipe: some thousands of records.
PIPE_BYTES: Final = 1 << 20


def records_counter(segment: Segment, outcome: str) -> Counter:
    """Return the counter of records that were `written` or `dropped`."""
    return Counter(segment, series_key(FAMILY, {"outcome": outcome}))


class RequestLog:
    """Starts and stops the request log according to `config.database`, and with it the ledger of virtual keys."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self.spend: SpendKeeper = SpendKeeper(segment)
        self._leases: LeaseKeeper | None = None
        self._alerts: AlertWatch | None = None
        self._gatherer: Gatherer | None = None
        # Who writes into it, by process id.
        self._known: set[int] = set()

    async def prepare(self, gateway: Gateway, workers: Iterable[WorkerHandle]) -> None:
        """Start to gather the records of all workers if the new configuration has a request log. Call this before the
        swap."""
        store = gateway.process.request_log
        given = tuple(workers)
        await self.spend.prepare(gateway)
        await self._lease(gateway, given)
        await self._watch(gateway)
        if self._gatherer is not None and self._gatherer.store != store:
            await self._stop_gathering()
        if store is None:
            return
        if self._gatherer is None:
            from headgate.telemetry.requests.writer import Gatherer

            written, dropped = (records_counter(self._segment, outcome) for outcome in ("written", "dropped"))
            self._gatherer = Gatherer(store, written.add, dropped.add)
            self._gatherer.start()
        for worker in given:
            await self._join(self._gatherer, worker)

    async def _lease(self, gateway: Gateway, workers: tuple[WorkerHandle, ...]) -> None:
        wanted = gateway.virtual_keys is not None and gateway.virtual_keys.leases is not None
        if self._leases is None and wanted:
            from headgate.server.leases import LeaseKeeper  # where gateways share limits

            self._leases = LeaseKeeper(self._segment)
        if self._leases is not None:
            await self._leases.prepare(gateway, workers)

    async def forget(self, gateway: Gateway) -> None:
        """End what a configuration, which is in force, does not need, and the one before needed until now."""
        if self._leases is not None:
            await self._leases.forget(gateway)

    async def _watch(self, gateway: Gateway) -> None:
        keys = gateway.virtual_keys
        owners: tuple[KeyRecord | KeyTeam, ...] = () if keys is None else (*keys.keys, *keys.teams)
        warns = any(limit.warn_percent is not None for one in owners for limit in one.limits)
        if self._alerts is None and warns:
            from headgate.server.alerts import AlertWatch  # where a limit warns

            self._alerts = AlertWatch(self._segment, self.spend.claim)
        if self._alerts is not None:
            await self._alerts.prepare(gateway)

    async def _join(self, gatherer: Gatherer, worker: WorkerHandle) -> None:
        if worker.process is None or worker.process.pid in self._known:
            return
        reading, writing = os.pipe2(os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):      # more than this user may have: the usual size does as well
                fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            await worker.gather(writing)
        finally:
            os.close(writing)
        gatherer.add_pipe(reading)
        self._known.add(worker.process.pid)

    async def stop(self) -> None:
        """Write the remaining records and stop. Workers have ended by now, or drop further records."""
        if self._alerts is not None:
            self._alerts.stop()
        await self.spend.end()
        if self._leases is not None:
            await self._leases.stop()
        await self._stop_gathering()

    async def _stop_gathering(self) -> None:
        gatherer, self._gatherer = self._gatherer, None
        self._known.clear()
        if gatherer is not None:
            await asyncio.to_thread(gatherer.stop)
