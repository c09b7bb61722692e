class Lane:
    """C face only: one direction of a request that passes through a processor."""
