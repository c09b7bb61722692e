"""Random numbers for weights and balance: fast and evenly spread, not secret."""

def draw_below(bound: int) -> int:
    """Return a number in [0, bound); ValueError for a bound of 0 or of 2**32 and more."""
