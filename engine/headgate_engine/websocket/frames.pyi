CONTINUATION: int
TEXT: int
BINARY: int
CLOSE: int
PING: int
PONG: int

class FrameError(ValueError):
    """Bytes that are no frames, a message that is too long, or one that is compressed."""

class FrameReader:
    """masked: frames are a client's. limit: longest message in bytes.

    FrameError ends the reading: what comes behind it means nothing.
    """

    def __init__(self, masked: bool, limit: int) -> None: ...
    @property
    def masked(self) -> bool: ...
    @property
    def limit(self) -> int: ...
    def feed(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """Return (opcode, payload, the bytes it came in) of every message and control frame that is complete now."""

def frame(payload: bytes, opcode: int = ..., mask: bytes | None = ...) -> bytes:
    """Return one frame with the whole message; mask: the four bytes that a client's has."""
