"""The view of the running gateway that the operator's servers have."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from headgate.admin.expression_process import ExpressionEvaluations
from headgate.config.load import Source
from headgate.ir.gateway import Gateway
from headgate.telemetry.levels import Directives
from headgate_engine.shared.segment import Segment

if TYPE_CHECKING:
    from headgate.config.resources.stored import ResourceChange, Written


class TrafficPoint(NamedTuple):
    """The traffic up to a time in ms since 1970, as JSON: an hour of it takes too long to be encoded on the loop."""

    time_ms: int
    text: bytes


class TraceLines(Protocol):
    """The events of one traced request."""

    def lines(self) -> AsyncIterator[bytes]: ...
    def close(self) -> None: ...


# Admissible average number of bytes between two heap samples.
HEAP_RATES: Final = range(4096, (1 << 30) + 1)
DEFAULT_HEAP_RATE: Final = 524288
# What a gateway waits for that begins.
STARTING: Final = ("proxy", "state manager")


class ProfileError(Exception):
    """A profile cannot be made; the argument gives the reason."""


class UpgradeRefused(Exception):
    """No other process takes the place of this one, which continues unchanged. The argument gives the reason."""


class SpendSums(Protocol):
    """The ledger of virtual keys."""

    async def sums(self, first: str, last: str, by: tuple[str, ...]) -> list[tuple[str | int, ...]]: ...


class RecordKeeper(Protocol):
    """What writes into the database of the request log."""

    @property
    def spend(self) -> SpendSums: ...


class Process(Protocol):
    """The supervisor's interface for the admin layer."""

    source: Source
    gateway: Gateway
    generation: int
    segment: Segment
    levels: Directives

    @property
    def records(self) -> RecordKeeper: ...
    async def worker_numbers(self) -> list[dict[str, object]]: ...
    async def worker_memory(self) -> list[dict[str, object]]: ...
    async def worker_mcp_targets(self) -> list[dict[str, object]]: ...
    def worker_pids(self) -> list[int]: ...
    async def set_levels(self, text: str, reset: bool) -> str: ...
    async def watch_trace(self, expression: str | None) -> TraceLines: ...
    async def change_resources(self, change: ResourceChange) -> Written: ...
    async def cpu_profile(self, seconds: int, frequency: int) -> bytes: ...
    async def heap_profile(self) -> bytes: ...
    async def heap_totals(self) -> dict[str, int] | None: ...
    async def sample_heap(self, rate: int) -> None: ...
    async def tasks(self) -> dict[str, list[str]]: ...
    async def upgrade(self) -> int: ...
    def trace_watchers(self) -> int: ...
    def stop(self, why: str) -> None: ...


class RunningGateway:
    """The running gateway, as endpoints see it."""

    def __init__(self, process: Process) -> None:
        self.process = process
        # One for all servers, so that its limit holds for all of them together.
        self.evaluations = ExpressionEvaluations()
        self.started_unix_s = int(time.time())
        self.pending: set[str] = set(STARTING)
        # What the page shows of the hour before it was opened; the supervisor fills it.
        self.points: deque[TrafficPoint] | None = None

    @property
    def gateway(self) -> Gateway:
        """Return the running configuration."""
        return self.process.gateway

    @property
    def ready(self) -> bool:
        """Return True if the gateway serves traffic."""
        return not self.pending
