MESSAGES: frozenset[bytes]
RESPONSES: frozenset[bytes]
FRAMES: frozenset[str]

def is_first_words(format: str, name: bytes, data: bytes) -> bool:
    """Return whether an event has words of the answer, or ends it. name: for "bedrock" the kind of a frame."""

def block_has_words(told: object) -> bool: ...
def chunk_has_words(told: object) -> bool: ...
def candidates_have_words(told: object) -> bool: ...
