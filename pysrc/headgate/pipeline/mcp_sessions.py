"""Session tables of MCP backends: limits, counts over all workers, and carry-over between configurations."""

from __future__ import annotations

import os

from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions
from headgate.ir.gateway import Gateway
from headgate.telemetry.metrics import series_key
from headgate_engine.link.worker import Worker
from headgate_engine.shared.counters import Gauge

FAMILY = "gw_mcp_sessions"
# Those of them that end with their worker, which are limited; no series of its own.
LIVING = "mcp_sessions_living"


class WorkersTally:
    """Counts the sessions of one backend in a gauge for each worker, because a dead worker cannot decrement its share
    of a common one."""

    def __init__(self, worker: Worker, workers: int, backend: str) -> None:
        self._all, self._all_living = (
            [
                Gauge(worker.segment, series_key(family, {"backend": backend, "worker": str(index)}))
                for index in range(max(workers, worker.index + 1))
            ]
            for family in (FAMILY, LIVING)
        )
        self._own, self._own_living = self._all[worker.index], self._all_living[worker.index]
        for own in (self._own, self._own_living):
            own.set(0)  # what it says is of a process that had this place before

    def add(self, n: int) -> None:
        """Count sessions of this worker that have begun, or (below 0) ended."""
        self._own.add(n)

    def add_living(self, n: int) -> None:
        """Add to the number of live sessions of this worker."""
        self._own_living.add(n)

    @property
    def living(self) -> int:
        """The number of live sessions in all workers."""
        return sum(gauge.value for gauge in self._all_living)

    @property
    def total(self) -> int:
        """The sessions of all workers."""
        return sum(gauge.value for gauge in self._all)


class SessionTables:
    """Makes the tables of one configuration in one worker; `previous` are those of the one before."""

    def __init__(self, worker: Worker, gateway: Gateway, ids: SessionIds, previous: SessionTables | None) -> None:
        self._worker = worker
        self._ids = ids
        self.limits = SessionLimits(gateway.process.mcp_session_ttl_ms / 1000, gateway.process.mcp_max_sessions)
        self._workers = gateway.process.workers.resolve(len(os.sched_getaffinity(0)))
        self._tallies: dict[str, WorkersTally] = {} if previous is None else previous._tallies

    def new(self, backend: str, *, resumable: bool) -> Sessions:
        """Return an empty table for a backend."""
        tally = self._tallies.get(backend)
        if tally is None:
            tally = self._tallies[backend] = WorkersTally(self._worker, self._workers, backend)
        return Sessions(self._worker.index, self._ids, self.limits, tally=tally, resumable=resumable)

    def apply_limits(self, sessions: Sessions) -> None:
        """Apply the limits of this configuration to a table that is kept."""
        sessions.limit(self.limits)
