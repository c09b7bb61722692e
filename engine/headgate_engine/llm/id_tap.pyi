import re
from collections.abc import Iterable
from typing import Protocol

from headgate_engine.plan.tap import ResponseTap

SEGMENT: re.Pattern[bytes]
GOOGLE: re.Pattern[bytes]

class _Sealer(Protocol):
    def seal(self, value: bytes, place: bytes, origin: bytes | None) -> bytes | None: ...

class IdScanner:
    """C face only: reads JSON, or events of JSON, as it comes."""

class IdTap(ResponseTap):
    """A ResponseTap that seals the ids of an answer of a provider."""

def sealed_text(
    pieces: Iterable[bytes],
    ids: _Sealer,
    place: bytes,
    origin: bytes | None = ...,
    google: bool = ...,
    paths: tuple[bytes, bytes] = ...,
) -> bytes:
    """Return what a client gets of the pieces of a body, for tests. ids.seal() says what becomes of an id.

    `paths`: how the provider's paths begin, and what clients' paths have in the place of that.
    """
