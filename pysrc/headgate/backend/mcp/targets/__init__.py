"""Transports towards MCP servers."""
