from typing import NamedTuple

DEFAULT_MAX_FRAME: int

class EventStreamError(ValueError):
    """The bytes are no event stream, or a frame is longer than the limit. The decoder is of no use from then on."""

class EventStreamMessage(NamedTuple):
    """One message. kind: `event`, `exception` or `error`.

    event: its `:event-type`, `:exception-type` or `:error-code`.
    """

    event: str
    data: bytes
    kind: str

class EventStreamDecoder:
    """Amazon event stream. Bytes may be cut anywhere; both checksums are checked. max_frame: bytes of a whole frame."""

    def __init__(self, max_frame: int = ...) -> None: ...
    @property
    def max_frame(self) -> int: ...
    def decode(self, chunk: bytes) -> list[EventStreamMessage]:
        """Return the frames completed by these bytes, in order; EventStreamError.

        The data of an `error`, which has no payload, is `{"message": <:error-message>}`.
        """

def header_block(headers: dict[str, str]) -> bytes:
    """Return string headers as they stand in a frame; ValueError when a name or value is too long."""

def encode_frame(headers: dict[str, str], payload: bytes) -> bytes:
    """Return one frame with string headers; ValueError when a name or value is too long."""
