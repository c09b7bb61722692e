"""Backends that understand the protocol of their targets: LLM providers and MCP servers."""
