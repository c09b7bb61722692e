"""Long work beside the loop: in threads, where requests of others do not wait for it.

It pays where the work gives the interpreter's lock away: the engine's searches do, and Python code does between its
instructions. A single call into C that holds the lock still holds the loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, ParamSpec, TypeVar

# What takes longer than this goes beside the loop, in nanoseconds. A way there and back costs about 0.1 ms.
LONG_NS: Final = 2_000_000
# Shorter JSON is decoded, translated and encoded on the loop in less than 5 ms, whatever it holds: the worst seen are
# 20 ns for each byte (many messages of a few letters).
LONG_BYTES: Final = 128 * 1024
# Longer bodies are looked through beside the loop for what routing needs and for their members. 2 MiB of short values
# take 5 ms, of escapes 9 ms, of plain text 0.1 ms.
PEEK_BYTES: Final = 256 * 1024
# Bodies in a content coding are taken out of it beside the loop: a few bytes of zstd or Brotli may stand for megabytes.
CODED_BYTES: Final = 0
THREADS: Final = 2
# How long the loop waits for the interpreter's lock, in seconds (5 ms without this).
SWITCH_S: Final = 0.0005
P = ParamSpec("P")
T = TypeVar("T")


class ShortSwitches:
    """Keeps the interpreter's switch interval short while there is long work, and only then: each switch costs some
    microseconds, and without threads that compute it has no effect.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._before = 0.0

    def begin(self) -> None:
        """Note that work begins."""
        with self._lock:
            if self._running == 0:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._before, SWITCH_S))
            self._running += 1

    def end(self, _work: Future[Any] | None = None) -> None:
        """Note that work has ended; the last one restores the interval."""
        with self._lock:
            self._running -= 1
            if self._running == 0:
                sys.setswitchinterval(self._before)


SWITCHES: Final = ShortSwitches()


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="long-work")


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the work returns, or raise what it raises. It continues to its end if the caller is cancelled."""
    future = _threads().submit(work, *args, **kwargs)
    # Not when the caller is cancelled: the work may go on.
    SWITCHES.begin()
    future.add_done_callback(SWITCHES.end)
    return await asyncio.wrap_future(future)
