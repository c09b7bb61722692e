"""The time in which an external processor has to answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class AnswerDeadline:
    """Calls `late` once it has run for `seconds` since it was last set. Moving it costs no timer."""

    __slots__ = ("_due", "_late", "_loop", "_seconds", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, late: Callable[[], None]) -> None:
        self._loop = loop
        self._seconds = seconds
        self._late: Callable[[], None] | None = late
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0

    def set(self, *, running: bool) -> None:
        """Begin anew, or stop."""
        if not running or self._late is None:
            self._due = 0.0
            return
        self._due = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_at(self._due, self._look)

    def close(self) -> None:
        """Stop for ever."""
        self._late = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if not self._due or self._late is None:
            return
        if self._due > self._loop.time():
            self._timer = self._loop.call_at(self._due, self._look)
        else:
            self._late()
