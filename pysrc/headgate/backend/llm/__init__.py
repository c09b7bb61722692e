"""LLM providers: which formats each takes, where, and what it wants to see in a request's head."""
