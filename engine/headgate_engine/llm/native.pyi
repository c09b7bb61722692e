from collections.abc import Callable, Iterable

from headgate_engine.context.request import TokenUsage
from headgate_engine.plan.tap import ResponseTap

ENDINGS: dict[str, int]
FORGOTTEN: dict[int, bytes]
MAX_DECODED: int
DECODED_STEP: int
MAX_STEPS: int
DECODED_FREE: int
DECODED_RATIO: int
TAIL: int
CUT: str
BROKEN: str
UNDECODED: str
SWELLS: str

class NativeTap(ResponseTap):
    """A ResponseTap that passes a provider's answer on, reads its usage, and tells broken streams from whole ones."""

def tap_stream(
    pieces: Iterable[bytes], format: str, stream_error: Callable[[str], bytes], *, strip: bool = False
) -> tuple[bytes, str | None, TokenUsage | None]:
    """Return what a client gets of these bytes of a 200 event stream, the fault found, and the usage; for tests."""

def usage_text(text: bytes, name: str) -> bytes | None:
    """Return the last complete object of this name in a part of a JSON text, as the only member of an object."""
