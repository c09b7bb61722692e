MAX_VALUE: int

def json_value(value: bytes) -> bytes:
    r"""Return a value as a JSON string. Bytes that are not UTF-8 become U+FFFD, other escaped characters \uNNNN."""
