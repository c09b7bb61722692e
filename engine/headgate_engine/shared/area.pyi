"""C face only."""
