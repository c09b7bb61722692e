class ReceiverLimits:
    """Limits of received messages, in bytes (max_headers: number of fields)."""

    def __init__(
        self,
        max_head: int = 65536,
        max_headers: int = 256,
        max_start_line: int = 16384,
        max_chunk_line: int = 4096,
        max_trailers: int = 16384,
    ) -> None: ...
    @property
    def max_head(self) -> int: ...
    @property
    def max_headers(self) -> int: ...
    @property
    def max_start_line(self) -> int: ...
    @property
    def max_chunk_line(self) -> int: ...
    @property
    def max_trailers(self) -> int: ...

class Http1Receiver:
    """The receiving half of Http1Codec. receiver.pxd has its C interface."""

    def __init__(self, role: int, limits: ReceiverLimits | None = None) -> None: ...
    @property
    def role(self) -> int: ...
