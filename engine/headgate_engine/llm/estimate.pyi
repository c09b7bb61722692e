MESSAGES: dict[str, tuple[str, ...]]
TEXTS: dict[str, tuple[str, ...]]
INNER: tuple[str, ...]
INSIDE: tuple[str, ...]

def tokens_of(text: str) -> int:
    """Return about how many tokens a text has."""

def tokens_of_document(format: str, told: object) -> int:
    """Return the estimate for a request that is decoded already; 0 for what is no object."""

def tokens_of_prompt(format: str, body: bytes) -> int:
    """Return about how many prompt tokens a request in a client format has; 0 for a body that is no JSON object."""
