CONTINUATION: int
TEXT: int
BINARY: int
CLOSE: int
PING: int
PONG: int

class FrameError(ValueError):
    """The bytes are not valid frames, or a message is too long or compressed."""

class FrameReader:
    """Reader of one direction of a WebSocket (RFC 6455 section 5).

    masked: the frames come from a client. limit: longest message in bytes. After a FrameError the reader cannot be used
    any more.
    """

    def __init__(self, masked: bool, limit: int) -> None: ...
    @property
    def masked(self) -> bool: ...
    @property
    def limit(self) -> int: ...
    @property
    def moved(self) -> int:
        """Bytes that were left over by feed() and moved, over all calls."""
    def feed(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """Return (opcode, payload, original bytes) of every message and control frame that is now complete.

        Raises FrameError.
        """

def frame(payload: bytes, opcode: int = ..., mask: bytes | None = ...) -> bytes:
    """Return a single frame that holds the whole message. mask: four bytes, for frames from a client."""
