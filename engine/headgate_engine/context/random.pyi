<<<<<<< HEAD:engine/headgate_engine/plan/random.pyi
"""Random numbers for weights and load balancing: fast and evenly distributed, not secret."""
=======
"""Random numbers for weights, load balancing and ids of traces: fast and evenly distributed, not secret."""

def draw_below(bound: int) -> int:
    """Return a random number in [0, bound). Raises ValueError for a bound of 0 or of 2**32 and more."""
>>>>>>> ad9e58fa (Trace requests over OTLP, give them ids, and say more of each in the access log):engine/headgate_engine/context/random.pyi
