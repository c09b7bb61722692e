import re
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
