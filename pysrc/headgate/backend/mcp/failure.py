"""Failures of MCP requests and the answers they get."""

from __future__ import annotations

from headgate.dialect.mcp.jsonrpc import error_message

Headers = list[tuple[str, str]]


class McpFailure(Exception):
    """A request cannot be served. `code` None: a plain-text body, else a JSON-RPC error."""

    def __init__(self, status: int, message: str, code: int | None = None, data: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.data = data

    def answer(self, raw_id: bytes | None) -> tuple[int, Headers, bytes]:
        """Return status, headers and body."""
        if self.code is None:
            return self.status, [("content-type", "text/plain")], f"mcp: {self.message}".encode()
        body = error_message(raw_id, self.code, self.message, self.data)
        return self.status, [("content-type", "application/json")], body


class TargetFailure(Exception):
    """The target cannot take or finish a request: it is gone, cannot be started, or broke its protocol."""


def session_not_found() -> McpFailure:
    """Return the 404 after which clients initialize anew."""
    return McpFailure(404, "session not found")
