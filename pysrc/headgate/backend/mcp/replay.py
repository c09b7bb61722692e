"""The last messages of a session's event streams, for clients that reconnect with Last-Event-ID."""

from __future__ import annotations

import secrets
from collections import deque
from typing import Final

HEADER: Final = "last-event-id"
# Maximum number of messages per session; older ones are lost.
KEPT_MESSAGES: Final = 64
KEPT_BYTES: Final = 256 * 1024


class Replay:
    """The last messages with their event ids, which start with `id_prefix` and are unique in this process.

    Streams of a session have numbers, which are in the ids of all but the first: `1a2b3c4d-7` and `1a2b3c4d-8.1`. What
    was on one stream is never sent again on another.
    """

    def __init__(self, id_prefix: str = "") -> None:
        self.name = id_prefix + secrets.token_hex(4)
        self._count = 0
        self._kept: deque[tuple[int, int, bytes]] = deque()
        self._bytes = 0

    def add(self, text: bytes, stream: int = 0) -> str:
        """Store a message of a stream and return its event id."""
        self._count += 1
        self._kept.append((self._count, stream, text))
        self._bytes += len(text)
        while len(self._kept) > KEPT_MESSAGES or (self._bytes > KEPT_BYTES and self._kept):
            self._bytes -= len(self._kept.popleft()[2])
        return self._id(self._count, stream)

    def _id(self, count: int, stream: int) -> str:
        return f"{self.name}-{count}.{stream}" if stream else f"{self.name}-{count}"

    @property
    def last_id(self) -> str:
        """Return the id of the last message; before the first message, the id of the beginning of the stream."""
        return f"{self.name}-{self._count}"

    def _read(self, event_id: str | None) -> tuple[int, int] | None:
        """Return the numbers of an event and its stream, None for an unknown id."""
        name, _, numbers = (event_id or "").rpartition("-")
        count, dot, stream = numbers.partition(".")
        if not dot:
            stream = "0"
        if name != self.name or not all(one.isascii() and one.isdigit() and len(one) < 16 for one in (count, stream)):
            return None
        return int(count), int(stream)

    def stream_of(self, event_id: str | None) -> int | None:
        """Return the number of an event's stream, None for an unknown id."""
        found = self._read(event_id)
        return None if found is None else found[1]

    def after(self, event_id: str | None) -> list[tuple[str, bytes]]:
        """Return the stored messages of an event's stream after it, with their ids; empty for an unknown id."""
        found = self._read(event_id)
        if found is None:
            return []
        last, stream = found
        return [(self._id(count, one), text) for count, one, text in self._kept if count > last and one == stream]
