import asyncio

class Timer:
    """C face only: a deadline and its place in the heap."""

class TimerQueue:
    """Deadlines of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Forget every timer."""
