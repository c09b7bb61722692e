"""One HTTP/2 request and its answer, as its connection sees them (RFC 9113 section 8)."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

Headers = list[tuple[bytes, bytes]]


class Http2Error(OSError):
    """An exchange failed. `unsent`: the server has not begun to serve it, so it may be sent again.

    `code`: the RFC 9113 section 7 error code that a stream was reset with.
    """

    def __init__(self, reason: str, *, unsent: bool = False, code: int | None = None) -> None:
        super().__init__(reason)
        self.unsent = unsent
        self.code = code


class TooLarge(Http2Error):
    """The answer has more bytes than were asked for."""


@dataclass(slots=True)
class Answer:
    """What came back: head, whole body, and trailers (also those of an answer that is a head alone)."""

    headers: Headers = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    trailers: Headers = field(default_factory=list)


class Exchange:
    """A request under way. `done` is over with the answer's end, or has what became of it; `room` wakes up who waits
    to send; `sent`: the request is whole.
    """

    __slots__ = ("answer", "done", "limit", "room", "sent")
    # Whether bytes of the body count as taken when they come.
    eager = True

    def __init__(self, limit: int) -> None:
        self.answer = Answer()
        self.limit = limit
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.sent = False

    def head(self, headers: Headers) -> None:
        """Take the head of the answer."""
        self.answer.headers = headers

    def data(self, data: bytes) -> bool:
        """Take a piece of the body; False for more than was asked for."""
        if len(self.answer.body) + len(data) > self.limit:
            return False
        self.answer.body += data
        return True

    def end(self) -> None:
        """The answer is whole."""
        if not self.done.done():
            self.done.set_result(None)
        self.room.set()

    def fail(self, error: Http2Error) -> None:
        """There will be no more."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # nobody may be waiting any more
        self.room.set()


class StreamExchange(Exchange):
    """An exchange whose body is read while it comes: what is not read yet keeps the server from sending more."""

    __slots__ = ("begun", "chunks", "more")
    eager = False

    def __init__(self) -> None:
        super().__init__(0)
        self.chunks: deque[bytes] = deque()
        self.begun = False
        self.more = asyncio.Event()

    def head(self, headers: Headers) -> None:
        """Take the head of the answer."""
        super().head(headers)
        self.begun = True
        self.more.set()

    def data(self, data: bytes) -> bool:
        """Take a piece of the body; the window bounds how many there are."""
        if data:
            self.chunks.append(data)
            self.more.set()
        return True

    def end(self) -> None:
        """The answer is whole."""
        super().end()
        self.more.set()

    def fail(self, error: Http2Error) -> None:
        """There will be no more."""
        super().fail(error)
        self.more.set()
