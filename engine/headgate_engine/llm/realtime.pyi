from collections.abc import Iterable

from headgate_engine.context.request import TokenUsage
from headgate_engine.plan.tap import TunnelTap

DONE: bytes

class FrameTap(TunnelTap):
    """C face only: reads what a realtime provider used from its WebSocket frames (RFC 6455 section 5)."""

def counted(pieces: Iterable[bytes], format: str = "realtime") -> TokenUsage | None:
    """Return the usage that these bytes of a provider tell, for tests; None without any."""
