class ArrayTap:
    """C face only: puts the events of a stream into one JSON array."""
