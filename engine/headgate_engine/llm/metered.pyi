from headgate_engine.plan.tap import ResponseTap

KINDS: dict[str, int]
SPENT: str

class MeteredTap(ResponseTap):
    """A ResponseTap that counts what a stream says."""
