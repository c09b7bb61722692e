"""Policy servers that see MCP requests before they are served, and results before they are told."""
