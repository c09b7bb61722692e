CODINGS: tuple[str, ...]
ALIASES: dict[str, str]
MEMBERS: dict[str, bytes]
STEP: int
PIECE: int
FIRST_PIECE: int
MAX_MEMBERS: int
BYTES_PER_MEMBER: int
WINDOW_LOG: int

class CodingError(ValueError):
    """The bytes do not match their coding, or end too early."""

class DecodedTooLong(CodingError):
    """The decoded body is longer than the limit."""

class Decoder:
    """Decoder of one coding of CODINGS, step by step."""

    def __init__(self, coding: str) -> None: ...
    @property
    def coding(self) -> str: ...
    @property
    def done(self) -> bool:
        """True after the end that the coding itself marks."""
    @property
    def members(self) -> int:
        """Members (gzip) or frames (zstd) that have begun."""
    @property
    def given(self) -> int:
        """Bytes that the library was given; those that it gave back count again."""
    def decode(self, data: bytes, limit: int) -> list[bytes]:
        """Return the decoded input in pieces of at most `limit` bytes (a few more with br). Raises CodingError."""

def decode(coding: str, body: bytes, limit: int) -> bytes:
    """Return the whole decoded body. Raises CodingError, or DecodedTooLong past `limit` bytes."""

def name_of(value: str | None) -> str | None:
    """Return the single coding of a content-encoding, None without one, "" for several and for unknown ones."""
