"""What a worker shares with other replicas; it stays while its settings do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.ir.gateway import Gateway
from headgate_engine.link.worker import Worker

if TYPE_CHECKING:
    from headgate.backend.mcp.ended import EndedSessions
    from headgate.policy.shared.limiter import SharedLimiter


class Shared:
    """The shared state of one configuration."""

    def __init__(self, worker: Worker, gateway: Gateway, previous: Shared | None) -> None:
        self._worker = worker
        self._settings = gateway.process.shared_state
        # Routes that did not change keep their steps, and with them the limiter.
        same = previous is not None and previous._settings == self._settings
        self._limiter: SharedLimiter | None = previous._limiter if previous is not None and same else None

        self._ended: EndedSessions | None = previous._ended if previous is not None and same else None

    def ended(self) -> EndedSessions | None:
        """Return what knows of MCP sessions that other replicas have ended, None if replicas share nothing."""
        if self._ended is None and self._settings is not None:
            from headgate.backend.mcp.ended import EndedSessions  # with the client of Redis

            self._ended = EndedSessions(self._settings, self._worker.segment, self._worker.spawn)
        return self._ended

    def limiter(self) -> SharedLimiter | None:
        """Return what asks the store, None if replicas share nothing."""
        if self._limiter is None and self._settings is not None:
            from headgate.policy.shared.limiter import SharedLimiter  # with the client of Redis

            self._limiter = SharedLimiter(self._settings, self._worker.segment, self._worker.spawn)
        return self._limiter

    def close_unused(self, current: Shared) -> None:
        """End what `current` has not taken over."""
        if self._limiter is not None and current._limiter is not self._limiter:
            self._worker.spawn("shared limits", self._limiter.aclose())
        if self._ended is not None and current._ended is not self._ended:
            self._worker.spawn("mcp ended sessions", self._ended.aclose())

    async def aclose(self) -> None:
        """Give back what is left of leases, at the end of the worker."""
        if self._limiter is not None:
            await self._limiter.aclose()
        if self._ended is not None:
            await self._ended.aclose()
