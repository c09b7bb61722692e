"""Several MCP servers behind one endpoint."""
