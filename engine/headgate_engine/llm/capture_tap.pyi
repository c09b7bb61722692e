from headgate_engine.llm.outer_tap import OuterTap

COUNTING: frozenset[str]
SILENT: frozenset[str]
DECODERS: dict[str, type]
STEP: int

class CaptureTap(OuterTap):
    """A ResponseTap around others that reads what the client gets, for expressions."""
