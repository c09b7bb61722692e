"""The path of events from a traced request to its watcher: a bounded queue in front of a pipe. A slow watcher loses
events; the request never waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import deque
from typing import Final

logger = logging.getLogger("headgate.trace")

MAX_EVENTS: Final = 1024
MAX_BYTES: Final = 32 * 1024 * 1024
# After the request has ended, the watcher has this long to read the queued events.
LAST_SECONDS: Final = 30.0


class Outlet:
    """Writes lines to the file descriptor `descriptor`, which it owns. An empty line ends the trace."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._ending = False
        self._waits = False
        self._last: asyncio.TimerHandle | None = None
        self.dropped = 0
        os.set_blocking(descriptor, False)

    @property
    def open(self) -> bool:
        """True while the pipe is open."""
        return self._descriptor >= 0

    def write(self, line: bytes) -> None:
        """Queue one event; a full queue drops it."""
        if self._descriptor < 0 or self._ending:
            return
        if len(self._queue) >= MAX_EVENTS or self._size + len(line) > MAX_BYTES:
            self.dropped += 1
            return
        self._put(line + b"\n")

    def end(self) -> None:
        """Queue the end of the trace, and close the pipe when the queue is empty."""
        if self._descriptor < 0 or self._ending:
            return
        self._ending = True
        if self.dropped:
            logger.debug("trace events dropped", extra={"events": self.dropped})
        self._put(b"\n")
        if self._descriptor >= 0 and not self._queue:
            self.close()
        elif self._descriptor >= 0:
            self._last = asyncio.get_running_loop().call_later(LAST_SECONDS, self.close)

    def _put(self, data: bytes) -> None:
        self._queue.append(data)
        self._size += len(data)
        if not self._waits:
            self._push()

    def _push(self) -> None:
        while self._queue:
            data = self._queue[0]
            try:
                sent = os.write(self._descriptor, data)
            except BlockingIOError:
                break
            except OSError:
                self.close()  # the watcher is gone
                return
            self._size -= sent
            if sent < len(data):
                self._queue[0] = data[sent:]
            else:
                self._queue.popleft()
        if self._queue and not self._waits:
            asyncio.get_running_loop().add_writer(self._descriptor, self._push)
            self._waits = True
        elif not self._queue and self._waits:
            asyncio.get_running_loop().remove_writer(self._descriptor)
            self._waits = False
        if not self._queue and self._ending:
            self.close()

    def close(self) -> None:
        """Close the pipe and discard queued events."""
        descriptor, self._descriptor = self._descriptor, -1
        if self._last is not None:
            self._last.cancel()
        self._queue.clear()
        if descriptor >= 0:
            if self._waits:
                asyncio.get_running_loop().remove_writer(descriptor)
            with contextlib.suppress(OSError):
                os.close(descriptor)
