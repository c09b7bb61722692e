from collections.abc import Iterable

from headgate_engine.http2.hpack import HpackDecoder, HpackEncoder
from headgate_engine.http2.table import DynamicTable

def decoded(decoder: HpackDecoder, block: bytes) -> tuple[list[tuple[bytes, bytes, bool]], bool]:
    """Return (name, value, never indexed) of each field of a block, and whether the list was over a limit."""

def encoded(encoder: HpackEncoder, fields: Iterable[tuple[bytes, bytes, bool]]) -> bytes:
    """Return the block of an iterable of (name, value, never indexed)."""

def memory_of(table: DynamicTable) -> int:
    """Return the bytes that ring and contents of a table take."""

def add_entry(table: DynamicTable, name: bytes, value: bytes) -> None: ...
def entries_of(table: DynamicTable) -> list[tuple[bytes, bytes]]:
    """Return (name, value) of all entries, the newest first."""

def find_entry(table: DynamicTable, name: bytes, value: bytes) -> tuple[int, bool]:
    """Return the index in the common address space (0: none), and whether the value is the same too."""
