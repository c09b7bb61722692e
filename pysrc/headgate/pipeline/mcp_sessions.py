"""Session tables of MCP backends: limits, counts over all workers, and carry-over between configurations."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.backend.mcp.session import SessionIds, SessionLimits, Sessions
from headgate.ir.gateway import Gateway
from headgate.telemetry.metrics import series_key
from headgate_engine.link.worker import Worker
from headgate_engine.shared.counters import Gauge

if TYPE_CHECKING:
    from headgate.backend.mcp.ended import EndedSessions

FAMILY = "gw_mcp_sessions"
# Those of them that end with their worker, which are limited; no series of its own.
LIVING = "mcp_sessions_living"
# Those that own a process, and those of them whose client has not come back since `initialize`; neither.
PROCESSES = "mcp_sessions_processes"
UNFINISHED = "mcp_sessions_unfinished"


class WorkersTally:
    """Counts the sessions of one backend in a gauge for each worker, because a dead worker cannot decrement its share
    of a common one."""

    def __init__(self, worker: Worker, workers: int, backend: str) -> None:
        self._all, self._all_living, self._all_processes, self._all_unfinished = every = [
            [
                Gauge(worker.segment, series_key(family, {"backend": backend, "worker": str(index)}))
                for index in range(max(workers, worker.index + 1))
            ]
            for family in (FAMILY, LIVING, PROCESSES, UNFINISHED)
        ]
        self._own, self._own_living, self._own_processes, self._own_unfinished = (one[worker.index] for one in every)
        for one in every:
            one[worker.index].set(0)  # what it says is of a process that had this place before

    def add(self, n: int) -> None:
        """Count sessions of this worker that have begun, or (below 0) ended."""
        self._own.add(n)

    def add_living(self, n: int) -> None:
        """Add to the number of live sessions of this worker."""
        self._own_living.add(n)

    def add_processes(self, n: int) -> None:
        """Add to the number of sessions of this worker that own a process."""
        self._own_processes.add(n)

    def add_unfinished(self, n: int) -> None:
        """Add to the number of those whose client has not come back since `initialize`."""
        self._own_unfinished.add(n)

    @property
    def processes(self) -> int:
        """The number of sessions that own a process in all workers."""
        return sum(gauge.value for gauge in self._all_processes)

    @property
    def unfinished(self) -> int:
        """The number of those whose client has not come back, in all workers."""
        return sum(gauge.value for gauge in self._all_unfinished)

    @property
    def living(self) -> int:
        """The number of live sessions in all workers."""
        return sum(gauge.value for gauge in self._all_living)

    @property
    def total(self) -> int:
        """The sessions of all workers."""
        return sum(gauge.value for gauge in self._all)


def nothing_shared() -> None:
    """Return None: no other replica ends a session."""


class SessionTables:
    """Makes the tables of one configuration in one worker; `previous` are those of the one before. `ended`: what
    knows of sessions that other replicas have ended.
    """

    def __init__(
        self,
        worker: Worker,
        gateway: Gateway,
        ids: SessionIds,
        previous: SessionTables | None,
        ended: Callable[[], EndedSessions | None] = nothing_shared,
    ) -> None:
        self._worker = worker
        self._ids = ids
        self._ended = ended
        process = gateway.process
        self.limits = SessionLimits(
            process.mcp_session_ttl_ms / 1000,
            process.mcp_max_sessions,
            process.mcp_max_processes,
            process.mcp_max_uninitialized,
            process.mcp_initialize_timeout_ms / 1000,
            process.mcp_session_max_age_ms / 1000,
        )
        self._workers = gateway.process.workers.resolve(len(os.sched_getaffinity(0)))
        self._tallies: dict[str, WorkersTally] = {} if previous is None else previous._tallies

    def new(self, backend: str, *, resumable: bool, processes: bool = False) -> Sessions:
        """Return an empty table for a backend. `processes`: each of its sessions owns one, or several."""
        tally = self._tallies.get(backend)
        if tally is None:
            tally = self._tallies[backend] = WorkersTally(self._worker, self._workers, backend)
        found = Sessions(self._worker.index, self._ids, self.limits, tally=tally, resumable=resumable)
        found.owns_processes = processes
        self.share(found)
        return found

    def apply_limits(self, sessions: Sessions) -> None:
        """Apply the limits of this configuration to a table that is kept."""
        sessions.limit(self.limits)

    def share(self, sessions: Sessions) -> None:
        """Have a table ask the store of this configuration, and hear of it, what other replicas have ended."""
        # No id brings back a session with a process.
        sessions.ended = None if sessions.owns_processes else self._ended()
        if sessions.ended is not None and len(sessions):
            sessions.ended.listen(sessions)
