
CODES: dict[int, int]
UNKNOWN: int
UNAVAILABLE: int
NO_BACKEND: bytes

def percent_encoded(message: bytes) -> bytes:
    """Escape bytes that grpc-message cannot contain as %XX: everything but printable ASCII, and the percent sign."""
