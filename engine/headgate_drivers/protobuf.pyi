def wire_fields(message: bytes) -> list[tuple[int, int, int, bytes]] | None:
    """Return the fields of a message: number, wire type, value of a varint, content. None: it is malformed."""

def utf8(text: bytes) -> bool:
    """Return whether readers of protobuf take the bytes for text."""
