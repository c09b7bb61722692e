"""The Model Context Protocol (https://modelcontextprotocol.io/specification)."""
