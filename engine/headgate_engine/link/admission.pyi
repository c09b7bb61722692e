"""C face only: asks who may connect."""
