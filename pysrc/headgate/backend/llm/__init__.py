"""LLM providers: the formats and paths of each, and the header fields that it needs."""
