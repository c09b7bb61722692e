"""Policy servers that inspect MCP requests before they are served, and results before the client gets them."""
