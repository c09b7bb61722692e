"""Failures of MCP requests and the responses to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from headgate.dialect.mcp.jsonrpc import INTERNAL_ERROR, error_message

Headers = list[tuple[str, str]]
# Reason for the failure of a request whose server, of revision 2026-07-28, sends a request itself.
DIRECT_REQUEST: Final = (
    "the server sent a request of its own; in this revision it returns a result of type input_required"
)
# When a client that is told of too many processes may ask again.
BUSY_SECONDS: Final = 10
# Header fields of a target's refusal that the client gets.
REFUSAL_FIELDS: Final = ("content-type", "retry-after", "www-authenticate")


class McpFailure(Exception):
    """A request fails. With `code` the response is a JSON-RPC error, without it plain text."""

    def __init__(
        self, status: int, message: str, code: int | None = None, data: object = None, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.status = status
        self.message = message
        self.code = code
        self.data = data
        self.raw_id: bytes | None = None
        self.of_target = False

    def identified(self, context: Any) -> McpFailure:
        """Add the request's id (`frontendPolicies.http.requestId`) to the data of an error of the gateway; return this
        failure. A target's error stays as it is."""
        own = None if context is None else context.own_request_id
        if own is None or self.code is None or self.of_target:
            return self
        if self.data is None or isinstance(self.data, dict):
            self.data = {"requestId": own, **(self.data or {})}
        return self

    def about(self, raw_id: bytes | None) -> McpFailure:
        """Set the id of the request, for a request that could not be parsed completely; return this failure."""
        self.raw_id = raw_id
        return self

    def answer(self, raw_id: bytes | None) -> tuple[int, Headers, bytes]:
        """Return status, headers and body of the response."""
        later = [] if self.retry_after_s is None else [("retry-after", str(self.retry_after_s))]
        if self.code is None:
            return self.status, [("content-type", "text/plain"), *later], f"mcp: {self.message}".encode()
        body = error_message(raw_id, self.code, self.message, self.data)
        return self.status, [("content-type", "application/json"), *later], body

    def in_stream(self, raw_id: bytes | None) -> bytes:
        """Return the error message for a response that has already started."""
        return error_message(raw_id, INTERNAL_ERROR if self.code is None else self.code, self.message, self.data)


class PassedRefusal(McpFailure):
    """A target's refusal, sent to the client unchanged. `in_answer`: its body is a JSON-RPC response."""

    def __init__(self, status: int, headers: Headers, body: bytes, in_answer: bool = False) -> None:
        super().__init__(status, f"the target answered with status {status}")
        self._headers = [(name, value) for name, value in headers if name.lower() in REFUSAL_FIELDS]
        self._body = body
        self._in_answer = in_answer

    def answer(self, raw_id: bytes | None) -> tuple[int, Headers, bytes]:
        """Return status, headers and body of the target's refusal."""
        return self.status, self._headers, self._body

    def in_stream(self, raw_id: bytes | None) -> bytes:
        """Return the target's own response if it sent one, else an error message."""
        return self._body if self._in_answer else super().in_stream(raw_id)


class TargetFailure(Exception):
    """The target cannot take or complete a request: it has ended, cannot be started, or violated the protocol.

    `of_gateway`: it is not the target's doing.
    """

    of_gateway = False


class OwnFailure(TargetFailure):
    """The gateway does not complete a request: the client has cancelled it, or it exceeds a limit of the gateway."""

    of_gateway = True


def call_failure(error: OSError) -> TargetFailure:
    """Return the failure of a call. Where the gateway's limit on connections or waiting calls is in the way, the target
    knows nothing of it.
    """
    return (OwnFailure if getattr(error, "refused", False) else TargetFailure)(f"upstream call failed: {error}")


class NoAnswer(TargetFailure):
    """The target has ended its side of an exchange in order, without a response."""


class TargetRefusal(TargetFailure):
    """A remote target, or a policy in front of it, responded with a status other than 2xx.

    `forgotten`: the server no longer knows the session, and the gateway cannot open it again.
    """

    forgotten = False

    def __init__(self, status: int, fields: Headers, body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Return the JSON-RPC error in the body, None without one. Its id is ignored: refusals often have none."""
        try:
            found = json.loads(self.body).get("error")
        except (ValueError, AttributeError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


class OwnRefusal(TargetRefusal):
    """The gateway itself, or a policy in front of the target, has refused a request."""

    of_gateway = True


def error_of(target: str, error: Mapping[str, Any]) -> McpFailure:
    """Return a target's error for the client; invalid members are replaced, since targets may violate JSON-RPC."""
    code, said = error.get("code"), error.get("message")
    code = code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR
    said = said if isinstance(said, str) and said else "the target gave an error without a message"
    found = McpFailure(200, f"{target}: {said}", code, error.get("data"))
    found.of_target = True
    return found


class SharedStoreAway(McpFailure):
    """The store that replicas share does not say whether a session has ended (`failureMode: deny`)."""

    def __init__(self) -> None:
        super().__init__(503, "the shared store does not answer", INTERNAL_ERROR, retry_after_s=1)


def busy(message: str) -> McpFailure:
    """Return the 503 of a gateway that cannot start another process now."""
    return McpFailure(503, message, INTERNAL_ERROR, retry_after_s=BUSY_SECONDS)


def session_not_found() -> McpFailure:
    """Return the 404 that makes clients initialize a new session."""
    return McpFailure(404, "session not found")
