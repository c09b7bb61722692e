PREFACE: bytes

class Http2FrameReader:
    """Frames of a peer. frames.pxd has its C interface."""

    def __init__(
        self, preface: bool = False, max_frame: int = 16384, max_block: int = 131072, max_continuations: int = 32
    ) -> None: ...
    def frames(self, data: bytes) -> list[tuple[int, int, int, bytes, bool]]:
        """Return (kind, flags, stream, data, last piece) of each frame, or piece of one, in the bytes."""
