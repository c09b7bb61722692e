from headgate_engine.llm.outer_tap import OuterTap

class ArrayTap(OuterTap):
    """C face only: puts the events of a stream into one JSON array."""
