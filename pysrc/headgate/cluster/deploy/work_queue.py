"""Work on keys: each by one task at a time, again after a failure until it succeeds, later each time."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Final

from headgate.cluster.calls import ApiError
from headgate.cluster.errors import ClusterError
from headgate.cluster.snapshot import ObjectKey
from headgate.net.tasks import spawn

logger = logging.getLogger("headgate.deployer")

# Seconds.
FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
WORKERS: Final = 4
_MOST_DOUBLINGS: Final = 10


def delay_after(failures: int, chance: Callable[[], float] = random.random) -> float:
    """Return the seconds until the next try, at least half of what the number of failures comes to."""
    longest = min(LONGEST_DELAY, FIRST_DELAY * float(1 << min(failures - 1, _MOST_DOUBLINGS)))
    return longest * (0.5 + chance() / 2)


class WorkQueue:
    """`work` is called with a key and may raise; it holds at most the keys that it was given, each once."""

    def __init__(self, name: str, work: Callable[[ObjectKey], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        # Keys in the order in which they came; the values say nothing.
        self._waiting: dict[ObjectKey, None] = {}
        self._busy: set[ObjectKey] = set()
        self._failures: dict[ObjectKey, int] = {}
        self._timers: dict[ObjectKey, asyncio.TimerHandle] = {}
        self._something = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def add(self, key: ObjectKey) -> None:
        """Have work done on a key, at once even if it was to wait after a failure."""
        self._end_timer(key)
        self._waiting.setdefault(key)
        self._something.set()

    def add_later(self, key: ObjectKey, seconds: float) -> None:
        """Have work done on a key after a time, unless it comes to that earlier."""
        self._end_timer(key)
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self.add, key)

    def forget_failures(self, key: ObjectKey) -> None:
        self._failures.pop(key, None)

    def hold(self, held: bool) -> None:
        """Begin nothing while it is held; what is under way goes on."""
        if held:
            self._open.clear()
        else:
            self._open.set()

    async def run(self) -> None:
        """Work until it is cancelled."""
        workers = [spawn(f"{self._name} {number}", self._worker()) for number in range(WORKERS)]
        try:
            await asyncio.wait(workers)
        finally:
            for one in workers:
                one.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    async def _worker(self) -> None:
        while True:
            await self._open.wait()
            key = next((one for one in self._waiting if one not in self._busy), None)
            if key is None:
                self._something.clear()
                await self._something.wait()
                continue
            del self._waiting[key]
            self._busy.add(key)
            try:
                await self._work(key)
            except Exception as error:  # noqa: BLE001 (the boundary of the work on one key: others go on, it is tried again)
                self._failed(key, error)
            else:
                self.forget_failures(key)
            finally:
                self._busy.discard(key)
                self._something.set()

    def _failed(self, key: ObjectKey, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        seconds = delay_after(failures)
        expected = isinstance(error, ApiError | ClusterError | OSError)
        logger.warning(
            "deployment failed",
            extra={"gateway": str(key), "error": str(error), "failures": failures, "retry_s": round(seconds, 1)},
            exc_info=None if expected else error,
        )
        if key not in self._waiting:
            self.add_later(key, seconds)

    def _end_timer(self, key: ObjectKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
