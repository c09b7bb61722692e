"""A bounded queue of messages from a server to one reader."""

from __future__ import annotations

import asyncio
from collections import deque

QUEUE = 64
QUEUE_BYTES = 1024 * 1024


class Inbox:
    """Messages for one reader, in order. At most QUEUE messages or QUEUE_BYTES bytes wait, but one message of any
    length fits into an empty inbox.
    """

    def __init__(self) -> None:
        self._messages: deque[bytes | None] = deque()
        self._bytes = 0
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: bytes) -> bool:
        """Add a message; return False if there is no room."""
        if len(self._messages) >= QUEUE or (self._messages and self._bytes + len(message) > QUEUE_BYTES):
            return False
        self._add(message)
        return True

    def finish(self, message: bytes | None = None) -> None:
        """Add the last message, if any, and the end; both always fit."""
        if message is not None:
            self._add(message)
        self._add(None)

    def take_over(self, earlier: Inbox) -> None:
        """Take over the unread messages of another inbox, and end that inbox."""
        for message in earlier._messages:
            if message is not None:
                self._add(message)
        earlier._messages.clear()
        earlier._bytes = 0
        earlier.finish()

    def _add(self, message: bytes | None) -> None:
        self._messages.append(message)
        self._bytes += len(message or b"")
        self._arrived.set()

    async def get(self) -> bytes | None:
        """Return the next message, None at the end."""
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        self._bytes -= len(message or b"")
        return message
