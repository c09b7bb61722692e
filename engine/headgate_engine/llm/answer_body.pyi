from collections.abc import Iterable

FREE_BYTES: int
LIMITS: int
TOO_LARGE: str
TOO_MANY: str

class AnswerBody:
    """The bytes of an answer, within the bounds of its own and of all that a worker keeps."""

    def __len__(self) -> int: ...
    def __bytes__(self) -> bytes: ...

def held_bytes() -> int:
    """Return what long answers have that are kept now, in bytes."""

def kept(limit: int, pieces: Iterable[bytes]) -> AnswerBody | str:
    """Return an answer made of pieces, or why it does not take one. limit: of the answer, in bytes."""
