from headgate_engine.plan.tap import ResponseTap

KINDS: dict[str, int]
SPENT: str

class MeteredTap(ResponseTap):
    """A ResponseTap that counts what a stream says."""

def generated_tokens(format: str, events: bytes) -> int:
    """Return about how many tokens of output events of a stream in a client's format have."""
