"""Random numbers for weights and load balancing: fast and evenly distributed, not secret."""

def draw_below(bound: int) -> int:
    """Return a random number in [0, bound). Raises ValueError for a bound of 0 or of 2**32 and more."""
