STATUSES: dict[str, int]
ERROR_TYPES: frozenset[str]
BY_STATUS: dict[int, str]
WORDS: dict[str, str]
WORD_STATUSES: dict[str, int]

def kind_of_status(status: int) -> str:
    """Return the kind of an error of which only the HTTP status is known: one of ERROR_TYPES."""

def kind_of(type: str | None, code: str | None, status: int) -> str:
    """Return the kind of an error, one of ERROR_TYPES.

    type, code: the vendor's words, None where it tells none. status: 0 if it is not known. A general word gives way to
    a status that says more.
    """

def status_of(type: str | None, code: str | None) -> int:
    """Return the HTTP status for an error that a provider tells within a stream."""
