"""Many changes, one reaction: a little after the last of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

QUIET_SECONDS: Final = 0.010
MOST_SECONDS: Final = 1.0


class Debounce:
    """`clock`: seconds."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._event = asyncio.Event()
        self._first = 0.0
        self._last = 0.0

    def touch(self) -> None:
        """Something has changed."""
        self._last = self._clock()
        if not self._event.is_set():
            self._first = self._last
            self._event.set()

    async def wait(self) -> None:
        """Wait until something has changed and then nothing for QUIET_SECONDS, or MOST_SECONDS have passed since."""
        await self._event.wait()
        while (left := min(self._last + QUIET_SECONDS, self._first + MOST_SECONDS) - self._clock()) > 0:
            await self._sleep(left)
        self._event.clear()
