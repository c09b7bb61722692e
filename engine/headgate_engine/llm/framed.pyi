from headgate_engine.llm.native import NativeTap

CUT: str
BROKEN: str
METRICS: str
INPUT_COUNT: str
OUTPUT_COUNT: str
COUNTS: tuple[tuple[str, str, str], ...]

class BedrockTap(NativeTap):
    """A NativeTap that reads Amazon's event streams too."""

def stream_error(message: str) -> bytes:
    """Return the frame that clients of the vendor raise as an error."""
