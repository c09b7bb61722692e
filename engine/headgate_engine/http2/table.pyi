STATIC: tuple[tuple[bytes, bytes], ...]

class DynamicTable:
    """Fields that both sides know by number (RFC 7541 section 2.3.2). A `searched` one is that of an encoder.

    size, limit: bytes, 32 for each field and those of its name and value (section 4.1).
    """

    size: int
    limit: int
    def __new__(cls, limit: int = 4096, searched: bool = False) -> DynamicTable: ...
    def __len__(self) -> int: ...
