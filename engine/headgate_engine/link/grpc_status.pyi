
CODES: dict[int, int]
UNKNOWN: int
UNAVAILABLE: int
NO_BACKEND: bytes

def percent_encoded(message: bytes) -> bytes:
    """Bytes that may not stand in grpc-message, as %XX: everything but printable ASCII, and the percent sign."""
