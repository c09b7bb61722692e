"""The state of one HTTP/2 request and its response in a connection (RFC 9113 section 8)."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

Headers = list[tuple[bytes, bytes]]


class Http2Error(OSError):
    """An exchange failed. `unsent` means that the server has not begun to process it, so it may be sent again.

    `code` is the error code of a stream that the server has reset (RFC 9113 section 7), otherwise None.
    """

    def __init__(self, reason: str, *, unsent: bool = False, code: int | None = None) -> None:
        super().__init__(reason)
        self.unsent = unsent
        self.code = code


class TooLarge(Http2Error):
    """The response body exceeds the limit of the exchange."""


@dataclass(slots=True)
class Http2Response:
    """A response: headers, body and trailers. The trailers are empty if the response had none."""

    headers: Headers = field(default_factory=list)
    body: bytearray = field(default_factory=bytearray)
    trailers: Headers = field(default_factory=list)


class Http2Exchange:
    """A running request.

    `done` completes at the end of the response, or with the exception of a failed exchange. `room` is set when the
    sender may try again. `sent` means that the whole request was sent. `limit` bounds the response body in bytes.
    """

    __slots__ = ("answer", "done", "limit", "room", "sent")
    # True if flow-control credit is returned when data arrives, False if it is returned when data is read.
    eager = True

    def __init__(self, limit: int) -> None:
        self.answer = Http2Response()
        self.limit = limit
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.room = asyncio.Event()
        self.sent = False

    def head(self, headers: Headers) -> None:
        """Store the response headers."""
        self.answer.headers = headers

    def data(self, data: bytes) -> bool:
        """Append a part of the body. Return False if the body would exceed the limit."""
        if len(self.answer.body) + len(data) > self.limit:
            return False
        self.answer.body += data
        return True

    def end(self) -> None:
        """Record the end of the response."""
        if not self.done.done():
            self.done.set_result(None)
        self.room.set()

    def fail(self, error: Http2Error) -> None:
        """Record that the exchange has failed."""
        if not self.done.done():
            self.done.set_exception(error)
            self.done.exception()  # marks the exception as retrieved: there may be no waiter any more
        self.room.set()


class StreamExchange(Http2Exchange):
    """An exchange whose response body is read in parts. Unread data holds back flow-control credit from the server."""

    __slots__ = ("begun", "chunks", "more")
    eager = False

    def __init__(self) -> None:
        super().__init__(0)
        self.chunks: deque[bytes] = deque()
        self.begun = False
        self.more = asyncio.Event()

    def head(self, headers: Headers) -> None:
        """Store the response headers and wake the reader."""
        super().head(headers)
        self.begun = True
        self.more.set()

    def data(self, data: bytes) -> bool:
        """Queue a part of the body; the flow-control window bounds the queue. Return True."""
        if data:
            self.chunks.append(data)
            self.more.set()
        return True

    def end(self) -> None:
        """Record the end of the response and wake the reader."""
        super().end()
        self.more.set()

    def fail(self, error: Http2Error) -> None:
        """Record that the exchange has failed and wake the reader."""
        super().fail(error)
        self.more.set()
