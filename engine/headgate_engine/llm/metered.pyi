from headgate_engine.llm.outer_tap import OuterTap

KINDS: dict[str, int]
SPENT: str

class MeteredTap(OuterTap):
    """A ResponseTap that counts what a stream says."""
