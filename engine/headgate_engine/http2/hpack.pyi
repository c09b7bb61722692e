from headgate_engine.http2.table import DynamicTable

SELDOM: tuple[bytes, ...]

class HpackDecoder:
    """Header blocks of a peer. hpack.pxd has its C interface.

    max_list: bytes of a list of fields, each 32 more than its name and value (RFC 9113 section 6.5.2). limit: bytes of
    the dynamic table (RFC 7541 section 4.1).
    """

    table: DynamicTable
    def __init__(self, max_list: int = 65536, max_fields: int = 256, limit: int = 4096) -> None: ...

class HpackEncoder:
    """Header blocks for a peer. hpack.pxd has its C interface."""

    table: DynamicTable
    def __init__(self, most: int = 4096) -> None: ...
