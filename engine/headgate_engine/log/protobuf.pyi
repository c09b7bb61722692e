def attribute(name: str, value: object, *, tag: int = 0x0A) -> bytes:
    """Return an attribute as a field of a message (`opentelemetry.proto.common.v1.KeyValue`).

    Sequences and mappings become arrays and lists of values, to a depth of 8. Other values become their text.
    """

def message(tag: int, content: bytes) -> bytes:
    """Return a message as a field of another one, its length written as the request path does it."""
