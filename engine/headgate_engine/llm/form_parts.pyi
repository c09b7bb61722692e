"""C face only: llm.bounds asks it."""
