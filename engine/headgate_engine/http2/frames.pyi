PREFACE: bytes

class Http2FrameReader:
    """Frames of a peer. frames.pxd has its C interface."""

    def __init__(
        self, preface: bool = False, max_frame: int = 16384, max_block: int = 131072, max_continuations: int = 32
    ) -> None: ...
    def frames(self, data: bytes) -> list[tuple[int, int, int, bytes, bool]]:
        """Return (kind, flags, stream, data, last piece) of each frame, or piece of one, in the bytes."""

class Http2FrameWriter:
    """Frames as bytes, for Python callers."""

    @staticmethod
    def data(stream: int, data: bytes, end: bool = False) -> bytes: ...
    @staticmethod
    def headers(stream: int, block: bytes, end: bool = False, max_frame: int = 16384) -> bytes: ...
    @staticmethod
    def reset(stream: int, code: int) -> bytes: ...
    @staticmethod
    def window_update(stream: int, increment: int) -> bytes: ...
    @staticmethod
    def ping(eight: bytes, ack: bool = False) -> bytes: ...
    @staticmethod
    def goaway(last: int, code: int, detail: bytes = b"") -> bytes: ...
    @staticmethod
    def settings(values: tuple[tuple[int, int], ...] | None = None) -> bytes:
        """`values`: ((number, value), ...); None acknowledges."""
