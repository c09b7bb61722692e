ESTIMATES: dict[str, bytes]
MESSAGES: dict[str, tuple[str, ...]]
TEXTS: dict[str, tuple[str, ...]]
INNER: tuple[str, ...]
INSIDE: tuple[str, ...]

def tokens_of_document(format: str, told: object) -> int:
    """Return the estimate for a request that is decoded already; 0 for what is no object."""
