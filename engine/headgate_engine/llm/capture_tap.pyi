from headgate_engine.plan.tap import ResponseTap

COUNTING: frozenset[str]
SILENT: frozenset[str]
DECODERS: dict[str, type]
STEP: int

class CaptureTap(ResponseTap):
    """A ResponseTap around others that reads what the client gets, for expressions."""
