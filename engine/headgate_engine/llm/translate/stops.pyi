END: str
SEQUENCE: str
LENGTH: str
CONTEXT: str
TOOLS: str
FILTER: str
PAUSE: str
STOPS: tuple[str, ...]
READ: dict[str, dict[str, str]]
WRITE: dict[str, dict[str, str]]
CLOSED: frozenset[str]

def read_stop(format: str, word: object) -> str:
    """Return the stop that a format's word means; for words that are not known END, or FILTER in formats of CLOSED."""

def write_stop(format: str, stop: str) -> str:
    """Return a format's word for a stop. Formats: completions, messages; responses: status or reason, see READ."""
