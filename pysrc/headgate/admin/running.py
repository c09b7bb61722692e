"""What the operator's servers may see and do of the running gateway."""

from __future__ import annotations

import time
from typing import Protocol

from headgate.ir.gateway import Gateway
from headgate.telemetry.levels import Directives
from headgate_engine.shared.segment import Segment


class Process(Protocol):
    """The supervisor, as far as the admin layer knows it."""

    gateway: Gateway
    generation: int
    segment: Segment
    levels: Directives

    async def worker_numbers(self) -> list[dict[str, object]]: ...
    def worker_pids(self) -> list[int]: ...
    def set_levels(self, text: str, reset: bool) -> str: ...
    def stop(self, why: str) -> None: ...


class Running:
    """The view handed to the endpoints."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.started_unix_s = int(time.time())
        self.pending: set[str] = {"proxy", "state manager"}

    @property
    def gateway(self) -> Gateway:
        """The configuration that runs."""
        return self.process.gateway

    @property
    def ready(self) -> bool:
        """Whether traffic is served."""
        return not self.pending
