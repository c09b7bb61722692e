"""OpenAPI 3 documents as MCP tools: the list of tools, and the conversion of calls to HTTP requests and results.

Source: https://spec.openapis.org/oas/v3.1.0.
"""
