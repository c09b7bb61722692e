STATIC: tuple[tuple[bytes, bytes], ...]

class DynamicTable:
    """Fields that both sides know by number (RFC 7541 section 2.3.2). A `searched` one is that of an encoder."""

    size: int
    limit: int
    memory: int
    """Bytes that ring, buckets and contents take."""
    def __new__(cls, limit: int = 4096, searched: bool = False) -> DynamicTable: ...
    def __len__(self) -> int: ...
    def add(self, name: bytes, value: bytes) -> None: ...
    def entries(self) -> list[tuple[bytes, bytes]]:
        """Return (name, value) of all entries, the newest first."""
    def find(self, name: bytes, value: bytes) -> tuple[int, bool]:
        """Return the index in the common address space (0: none), and whether the value is the same too."""
