"""Failures of MCP requests and the answers they get."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, error_message

Headers = list[tuple[str, str]]
# Why a server of revision 2026-07-28 is not listened to any more.
DIRECT_REQUEST: Final = (
    "the server sent a request of its own; in this revision it returns a result of type input_required"
)
# What a target's refusal tells besides its body.
REFUSAL_FIELDS: Final = ("content-type", "retry-after", "www-authenticate")


class McpFailure(Exception):
    """A request cannot be served. `code` None: a plain-text body, else a JSON-RPC error."""

    def __init__(self, status: int, message: str, code: int | None = None, data: object = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.data = data
        self.raw_id: bytes | None = None

    def about(self, raw_id: bytes | None) -> McpFailure:
        """Return itself, with the id of the request that could not be read to its end."""
        self.raw_id = raw_id
        return self

    def answer(self, raw_id: bytes | None) -> tuple[int, Headers, bytes]:
        """Return status, headers and body."""
        if self.code is None:
            return self.status, [("content-type", "text/plain")], f"mcp: {self.message}".encode()
        body = error_message(raw_id, self.code, self.message, self.data)
        return self.status, [("content-type", "application/json")], body

    def in_stream(self, raw_id: bytes | None) -> bytes:
        """Return the message for a client whose answer has begun."""
        return error_message(raw_id, INTERNAL_ERROR if self.code is None else self.code, self.message, self.data)


class PassedRefusal(McpFailure):
    """A target's own refusal, which the client gets as it is. `in_answer`: its body is a response to the request."""

    def __init__(self, status: int, headers: Headers, body: bytes, in_answer: bool = False) -> None:
        super().__init__(status, f"the target answered with status {status}")
        self._headers = [(name, value) for name, value in headers if name.lower() in REFUSAL_FIELDS]
        self._body = body
        self._in_answer = in_answer

    def answer(self, raw_id: bytes | None) -> tuple[int, Headers, bytes]:
        """Return what the target said."""
        return self.status, self._headers, self._body

    def in_stream(self, raw_id: bytes | None) -> bytes:
        """Return the target's own response, where it gave one."""
        return self._body if self._in_answer else super().in_stream(raw_id)


class TargetFailure(Exception):
    """The target cannot take or finish a request: it is gone, cannot be started, or broke its protocol."""


class Refused(TargetFailure):
    """A remote target, or a policy in front of it, answered with a status that is no success. `forgotten`: the server
    knows the session no more, and nobody here knows how it was begun.
    """

    forgotten = False

    def __init__(self, status: int, fields: Headers, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def error(self) -> Mapping[str, Any] | None:
        """The JSON-RPC error in its body, whatever its id: servers that do not like a request often do not tell."""
        try:
            found = json.loads(self.body).get("error")
        except (ValueError, AttributeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def error_of(target: str, error: Mapping[str, Any]) -> McpFailure:
    """Return a target's own error as the client gets it. Targets also send what JSON-RPC does not allow."""
    code, said = error.get("code"), error.get("message")
    code = code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR
    said = said if isinstance(said, str) and said else "the target gave an error without a message"
    return McpFailure(200, f"{target}: {said}", code, error.get("data"))


def session_not_found() -> McpFailure:
    """Return the 404 after which clients initialize anew."""
    return McpFailure(404, "session not found")
