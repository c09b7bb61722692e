"""A conformant MCP server: what the official conformance suite wants of a server under test, in all revisions."""
