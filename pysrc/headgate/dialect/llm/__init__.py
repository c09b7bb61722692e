"""Formats of LLM traffic and the ways between them."""
