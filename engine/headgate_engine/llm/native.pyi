
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

def usage_text(text: bytes, name: str) -> bytes | None:
    """Return the last complete object of this name in a part of a JSON text, as the only member of an object."""
