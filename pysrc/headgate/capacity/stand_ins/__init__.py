"""What stands behind a gateway that is measured: an HTTP backend, a provider of models and an MCP server, as cheap
as Python allows."""
