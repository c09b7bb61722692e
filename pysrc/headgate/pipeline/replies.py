"""The error table: every answer the gateway makes by itself, with status, body and `reason` label.

Bodies are plain text as in the specification's error table; the body limits answer with an empty body.
"""

from __future__ import annotations

from typing import NamedTuple

from headgate_engine.context.request import Reply


class Row(NamedTuple):
    """One answer. `body` is the text sent, `reason` the label in metrics and logs."""

    status: int
    body: str
    reason: str


# Names as in headgate_engine.link.reasons; a test proves that none is missing on either side.
REPLIES: dict[str, Row] = {
    "invalid_request": Row(400, "invalid request", "InvalidRequest"),
    "method_not_allowed": Row(405, "method not allowed", "InvalidRequest"),
    "misdirected": Row(421, "misdirected request", "InvalidRequest"),
    "listener_not_found": Row(404, "listener not found", "NotFound"),
    "route_not_found": Row(404, "route not found", "NotFound"),
    "body_too_large": Row(413, "", "InvalidRequest"),
    "no_valid_backends": Row(500, "no valid backends", "Internal"),
    "internal": Row(500, "internal error", "Internal"),
    "upstream_protocol": Row(502, "upstream call failed: invalid response", "UpstreamFailure"),
    "response_too_large": Row(502, "", "UpstreamFailure"),
    "upgrade_refused": Row(502, "request upgrade failed", "UpstreamFailure"),
    "upstream_failed": Row(503, "upstream call failed", "UpstreamFailure"),
    "request_timeout": Row(504, "request timeout", "Timeout"),
    "upstream_timeout": Row(504, "upstream call timeout", "Timeout"),
}

FORBIDDEN = Row(403, "", "Authorization")
CSRF_FAILED = Row(403, "CSRF validation failed", "CsrfValidationFailed")
NO_PREFIX = Row(500, "failed to apply filters: the route matched no path prefix", "Internal")
NO_BODY = Row(500, "failed to apply filters: the body expression failed", "Internal")
RATE_LIMITED = Row(429, "rate limit exceeded", "RateLimit")
TEXT_PLAIN = (b"content-type", b"text/plain")


def reply_of(row: Row) -> Reply:
    """Return the engine's form of a row."""
    headers = (TEXT_PLAIN,) if row.body else ()
    return Reply(row.status, row.body.encode(), headers, row.reason)


def engine_replies() -> dict[str, Reply]:
    """Return the whole table for Worker.set_replies()."""
    return {name: reply_of(row) for name, row in REPLIES.items()}
