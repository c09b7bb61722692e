from collections.abc import Iterable

from headgate_engine.http2.table import DynamicTable

SELDOM: tuple[bytes, ...]

class HpackDecoder:
    """Header blocks of a peer. hpack.pxd has its C interface."""

    table: DynamicTable
    def __init__(self, max_list: int = 65536, max_fields: int = 256, limit: int = 4096) -> None: ...
    def fields(self, block: bytes) -> tuple[list[tuple[bytes, bytes, bool]], bool]:
        """Return (name, value, never indexed) of each field, and whether the list was over a limit."""

class HpackEncoder:
    """Header blocks for a peer. hpack.pxd has its C interface."""

    table: DynamicTable
    def __init__(self, most: int = 4096) -> None: ...
    def block(self, fields: Iterable[tuple[bytes, bytes, bool]]) -> bytes:
        """Return the block of an iterable of (name, value, never indexed)."""
