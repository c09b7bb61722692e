import asyncio
from collections.abc import Callable

class Timer:
    """C face only: a deadline and its place in the heap."""

class TimerQueue:
    """Deadlines of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Forget every timer."""

class PythonTimer(Timer):
    """A deadline for Python callers: `function(now_ns)` is called when it is due."""

    def __init__(self, queue: TimerQueue, function: Callable[[int], object]) -> None: ...
    def arm(self, deadline_ns: int) -> None:
        """Set or move the deadline, in ns of the monotonic clock."""
    def disarm(self) -> None: ...
    def remove(self) -> None: ...
