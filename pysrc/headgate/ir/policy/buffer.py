"""Bodies that are read whole before they are sent on."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferBody:
    """`max_bytes` None means the gateway's buffer size. `fail_open`: a larger body is passed on as it comes,
    otherwise it is refused (413 for a request, 502 for a response)."""

    max_bytes: int | None = None
    fail_open: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Either half may be missing."""

    request: BufferBody | None = None
    response: BufferBody | None = None
