
VERSIONS: frozenset[bytes]
BEGINNINGS: tuple[bytes, ...]
DROPPED: tuple[bytes, ...]
SESSION: bytes

class ClientHead:
    """C face only."""

def is_message(data: bytes) -> bool:
    """Tell whether the data of an event is a message."""
