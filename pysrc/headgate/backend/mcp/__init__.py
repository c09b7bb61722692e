"""MCP backends: sessions, transports, targets."""
