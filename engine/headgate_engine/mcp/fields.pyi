"""The head of a client's request to an MCP target, and the head that the target gets
(https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#streamable-http).
"""


VERSIONS: frozenset[bytes]
BEGINNINGS: tuple[bytes, ...]
DROPPED: tuple[bytes, ...]
SESSION: bytes

class ClientHead:
    """C face only."""

def is_message(data: bytes) -> bool:
    """Tell whether the data of an event is a message."""
