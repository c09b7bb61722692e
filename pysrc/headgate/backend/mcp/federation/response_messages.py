"""The messages in a response of a remote server: one JSON text, or events of a stream."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from headgate.backend.contract import UpstreamResponse
from headgate.backend.mcp.failure import TargetFailure
from headgate.backend.mcp.http_service import JSON, MAX_BODY, STREAM
from headgate.document.lazy_dataclass import dataclass
from headgate_engine.sse.decode import SseDecoder, SseError

# After how long a stream is taken up again, where the server does not say, and at most.
RESUME_SECONDS: Final = 1.0
MAX_PAUSE_SECONDS: Final = 30.0


@dataclass(slots=True)
class StreamPosition:
    """The position in an event stream: the id of its last event, and the delay before it is resumed."""

    event_id: str = ""
    pause_s: float = RESUME_SECONDS


async def closed(response: UpstreamResponse) -> None:
    """Close a response."""
    with contextlib.suppress(OSError):
        await response.aclose()


def media_type(response: UpstreamResponse) -> str:
    """Return the media type of a response, without parameters."""
    kind = response.header("content-type") or ""
    return kind if kind == JSON else kind.split(";")[0].strip().lower()


async def whole(response: UpstreamResponse) -> bytes:
    """Return the body of a response. Raises TargetFailure if it is incomplete or too long."""
    try:
        return await response.read(MAX_BODY)
    except (OSError, ValueError) as error:
        raise TargetFailure(f"upstream answer broke off: {error}") from error
    finally:
        await closed(response)


async def messages_of(response: UpstreamResponse, position: StreamPosition) -> AsyncGenerator[bytes, None]:
    """Yield the messages of a response, whether a stream or a single message. Raises TargetFailure."""
    kind = media_type(response)
    try:
        if response.status in (202, 204):
            return
        if kind == JSON:
            body = await response.read(MAX_BODY)
            if body and body != b"null":
                yield body
            return
        if kind != STREAM:
            raise TargetFailure(f"upstream answer has content type {kind[:80] or 'none'}")
        decoder = SseDecoder(MAX_BODY)
        async for chunk in response:
            for event in decoder.decode(chunk):
                if event.data and event.event == "message":
                    yield event.data
                if event.id is not None:
                    position.event_id = event.id
                if event.retry is not None:
                    position.pause_s = min(event.retry / 1000, MAX_PAUSE_SECONDS)
    except (OSError, ValueError, SseError) as error:
        raise TargetFailure(f"upstream answer broke off: {error}") from error
