"""The last messages of a session's event stream, for clients that reconnect with Last-Event-ID."""

from __future__ import annotations

import secrets
from collections import deque
from typing import Final

HEADER: Final = "last-event-id"
# Maximum number of messages per session; older ones are lost.
KEPT_MESSAGES: Final = 64
KEPT_BYTES: Final = 256 * 1024


class Replay:
    """The last messages of one stream with their event ids. The ids start with `id_prefix` and are unique to the stream
    in this process.
    """

    def __init__(self, id_prefix: str = "") -> None:
        self.name = id_prefix + secrets.token_hex(4)
        self._count = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def add(self, text: bytes) -> str:
        """Store a message and return its event id."""
        self._count += 1
        self._kept.append((self._count, text))
        self._bytes += len(text)
        while len(self._kept) > KEPT_MESSAGES or (self._bytes > KEPT_BYTES and self._kept):
            self._bytes -= len(self._kept.popleft()[1])
        return f"{self.name}-{self._count}"

    @property
    def last_id(self) -> str:
        """Return the id of the last message; before the first message, the id of the beginning of the stream."""
        return f"{self.name}-{self._count}"

    def after(self, event_id: str | None) -> list[tuple[str, bytes]]:
        """Return the stored messages after an event, with their ids; empty for an unknown id."""
        name, _, number = (event_id or "").rpartition("-")
        if name != self.name or not (number.isascii() and number.isdigit() and len(number) < 16):
            return []
        return [(f"{self.name}-{count}", text) for count, text in self._kept if count > int(number)]
