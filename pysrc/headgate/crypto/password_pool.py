"""Threads that compute password hashes, which are slow on purpose.

They are few and none else uses them, so that wrong passwords delay neither other work in threads nor, for long, the
logins behind them: what does not fit into the queue is refused at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

THREADS: Final = 2
# Hashes under way or waiting in one process. A usual one takes 50 to 100 ms, so the last one waits about a second.
MAX_HASHES: Final = 32


class PoolFull(Exception):
    """So many hashes are waiting that another one would take too long."""


class PasswordPool:
    """Computes at most `most` hashes at a time, those that wait included."""

    def __init__(self, threads: int = THREADS, most: int = MAX_HASHES) -> None:
        self._threads = threads
        self._most = most
        self._executor: ThreadPoolExecutor | None = None
        self._hashes = 0

    async def run(self, check: Callable[[], bool]) -> bool:
        """Return what `check` returns, called in a thread. Raises PoolFull."""
        if self._hashes >= self._most:
            raise PoolFull
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self._threads, "password")
        self._hashes += 1
        work = asyncio.get_running_loop().run_in_executor(self._executor, check)
        work.add_done_callback(self._finished)
        # Shielded: a thread goes on with a hash whose client has left, and it counts until it ends.
        return await asyncio.shield(work)

    def _finished(self, work: asyncio.Future[bool]) -> None:
        self._hashes -= 1
        if not work.cancelled():
            work.exception()       # seen, even if nobody waits for it any more


# One for all policies of a process.
PASSWORDS: Final = PasswordPool()
