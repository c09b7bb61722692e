"""Takes batches of spans or log records, and sends them until the collector has them or too much time has gone by.

No request waits for it. While the collector is slow or away, batches pile up in the sink, whose bound decides what is
dropped (headgate_engine.log.otlp_sink).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Final, Protocol

from headgate.policy.otlp.transport import ExportFailure
from headgate_engine.log.otlp_sink import OtlpSink
from headgate_engine.shared.counters import Counter

logger = logging.getLogger("headgate.otlp")

# Seconds that a batch waits for more, attempts at one, and the pauses between them: doubled each time.
DELAY_S: Final = 1.0
ATTEMPTS: Final = 5
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
# What the end of a worker waits for, at most.
FLUSH_S: Final = 2.0


class Transport(Protocol):
    """Sends exports."""

    async def send(self, message: bytes) -> tuple[int, str]:
        """Send one. Return how many parts were rejected, and why. Raises ExportFailure."""


class OtlpExporter:
    """Exports what is in a sink. `wrap` makes a message of a batch. `exported`: counts what the collector took."""

    def __init__(
        self,
        sink: OtlpSink,
        spawn: Callable[..., asyncio.Task[None]],
        exported: Counter | None = None,
        pause: Callable[[int], float] = lambda attempt: random.uniform(0.5, 1.0) * FIRST_PAUSE_S * 2**attempt,
    ) -> None:
        self.sink = sink
        self.transport: Transport | None = None
        self.wrap: Callable[[bytes], bytes] = bytes
        self._spawn = spawn
        self._exported = exported
        self._pause = pause
        self._task: asyncio.Task[None] | None = None
        self._full = asyncio.Event()
        self._closing = False
        self._failures = 0
        sink.wake = self._wake

    def _wake(self, full: bool) -> None:
        if full:
            self._full.set()
        if self._task is None:
            self._task = self._spawn("otlp export", self._run())

    async def _run(self) -> None:
        try:
            await self._wait(DELAY_S)
            while (batch := self.sink.take()) is not None:
                await self.deliver(*batch)
                if not self._full.is_set() and not self._closing and self.sink.count:
                    await self._wait(DELAY_S)
                self._full.clear()
        finally:
            self._task = None

    async def _wait(self, seconds: float) -> None:
        """Wait for a whole batch, or for the time."""
        if self._closing:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._full.wait()
        except TimeoutError:
            pass

    async def deliver(self, content: bytes, count: int) -> None:
        """Send a batch until the collector has it or too much time has gone by."""
        assert self.transport is not None
        message = self.wrap(content)
        for attempt in range(ATTEMPTS):
            try:
                rejected, why = await self.transport.send(message)
            except ExportFailure as error:
                if error.again and attempt + 1 < ATTEMPTS and not self._closing:
                    pause = self._pause(attempt) if error.wait_s is None else error.wait_s
                    await self._rest(min(pause, LONGEST_PAUSE_S))
                    continue
                self._lost(count, str(error))
                return
            except asyncio.CancelledError:
                self.sink.lose(count)
                raise
            if self._exported is not None:
                self._exported.add(max(count - rejected, 0))
            if rejected or why:
                self._lost(min(rejected, count), why)
            return

    async def _rest(self, seconds: float) -> None:
        """Pause between two attempts; the end of the worker ends it."""
        step = 0.1
        while seconds > 0 and not self._closing:
            await asyncio.sleep(min(step, seconds))
            seconds -= step

    def _lost(self, count: int, why: str) -> None:
        self.sink.lose(count)
        self._failures += 1
        if self._failures & (self._failures - 1) == 0:  # 1, 2, 4, ...: a collector that is away is no flood of lines
            told: dict[str, Any] = {"lost": count, "failures": self._failures, "error": why}
            logger.warning("a collector did not accept an export", extra=told)

    def close(self) -> None:
        """End pauses: from now on each batch is sent once."""
        self._closing = True
        self._full.set()

    async def aclose(self) -> None:
        """Send what waits, for a limited time, and count the rest as dropped."""
        self.close()
        self.sink.wake = None
        task = self._task
        if task is None and self.transport is not None:
            task = self._spawn("otlp export", self._run())
        if task is not None:
            done, _ = await asyncio.wait([task], timeout=FLUSH_S)
            if not done:
                task.cancel()
                await asyncio.wait([task])
        while (batch := self.sink.take()) is not None:
            self.sink.lose(batch[1])
