"""Formats of LLM requests and replies, and the translation between them."""
