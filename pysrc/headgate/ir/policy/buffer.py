"""Buffering of whole bodies before they are forwarded."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferBody:
    """The limit of one direction. `max_bytes` None means the gateway's buffer size.

    With `fail_open` a larger body is streamed; otherwise it is refused, with 413 for a request and 502 for a response.
    """

    max_bytes: int | None = None
    fail_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Limits of requests and responses. None means that the direction is not buffered."""

    request: BufferBody | None = None
    response: BufferBody | None = None
