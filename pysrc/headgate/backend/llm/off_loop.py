"""Long work beside the loop: in threads, where requests of others do not wait for it.

It pays where the work gives the interpreter's lock away: the engine's searches do, and Python code does between its
instructions. A single call into C that holds the lock still holds the loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Final, ParamSpec, TypeVar

# What takes longer than this goes beside the loop, in nanoseconds. A way there and back costs about 0.1 ms.
LONG_NS: Final = 2_000_000
THREADS: Final = 2
# How long the loop waits for the interpreter's lock, in seconds (5 ms without this).
SWITCH_S: Final = 0.0005
P = ParamSpec("P")
T = TypeVar("T")


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_S))
    return ThreadPoolExecutor(THREADS, thread_name_prefix="long-work")


async def off_loop(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what the work returns, or raise what it raises. It goes on to its end when the caller is cancelled."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), partial(work, *args, **kwargs))
