CODINGS: tuple[str, ...]
ALIASES: dict[str, str]
MEMBERS: dict[str, bytes]
STEP: int
WINDOW_LOG: int

class CodingError(ValueError):
    """The bytes are not what their coding says, or end too early."""

class DecodedTooLong(CodingError):
    """More bytes than the limit."""

class Decoder:
    """Undoes one coding of CODINGS step by step."""

    def __init__(self, coding: str) -> None: ...
    @property
    def coding(self) -> str: ...
    @property
    def done(self) -> bool:
        """Whether the coding's own end has come."""
    def decode(self, data: bytes, limit: int) -> list[bytes]:
        """Return the pieces of at most `limit` bytes each (a few more with br) that this input gives; CodingError."""

def decode(coding: str, body: bytes, limit: int) -> bytes:
    """Return all of a body; CodingError, DecodedTooLong past `limit` bytes."""

def name_of(value: str | None) -> str | None:
    """Return the one coding of a content-encoding, None without one, "" for several and for unknown ones."""
