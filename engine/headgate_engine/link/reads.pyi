import asyncio

from headgate_engine.link.timers import Timer

class Readable(Timer):
    """C face only: a socket that may be a member of a ReadSet."""

class ReadSet:
    """Plain sockets of a worker that it reads by itself."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None: ...
    def __len__(self) -> int: ...
    def close(self) -> None:
        """Read nothing any more."""
