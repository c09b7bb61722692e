"""Errors of providers and of the gateway, in the shapes of all formats."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from headgate.dialect.llm.contract import Json
from headgate_engine.llm.translate.blocks import ERROR_TYPES
from headgate_engine.llm.translate.readers import Garbage, load_json
from headgate_engine.llm.translate.writers import dump_json

# Error types by status, for all formats that have error types.
BY_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# Error types for Google's status words (https://cloud.google.com/apis/design/errors).
GOOGLE = {
    "INVALID_ARGUMENT": "invalid_request_error",
    "FAILED_PRECONDITION": "invalid_request_error",
    "OUT_OF_RANGE": "invalid_request_error",
    "NOT_FOUND": "not_found_error",
    "PERMISSION_DENIED": "authentication_error",
    "UNAUTHENTICATED": "authentication_error",
    "RESOURCE_EXHAUSTED": "rate_limit_error",
}
# Google's status words by HTTP status.
GOOGLE_BY_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# The maximum length in bytes of an error message from a body that is not JSON.
MAX_TEXT = 2000


class LlmFault(NamedTuple):
    """One error. `kind` is an error type of Messages and completions; `code` and `param` are those of OpenAI."""

    kind: str
    message: str
    code: str | None = None
    param: str | None = None


def kind_of(status: int) -> str:
    """Return the error type for an HTTP status."""
    return BY_STATUS.get(status, "invalid_request_error" if 400 <= status < 500 else "api_error")


def read(status: int, body: bytes) -> LlmFault:
    """Return the error in the body of a provider's response. The format is detected. Never raises."""
    try:
        found = load_json(body)
    except Garbage:
        text = body[:MAX_TEXT].decode("utf-8", "replace").strip()
        return LlmFault(kind_of(status), text or f"the provider answered {status}")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if not isinstance(found, dict):
        return LlmFault(kind_of(status), f"the provider answered {status}")
    error = found.get("error")
    if isinstance(error, dict):
        return _error(status, error)
    for name in ("message", "Message", "error", "detail", "error_description"):
        if isinstance(found.get(name), str) and found[name]:
            return LlmFault(kind_of(status), found[name])
    return LlmFault(kind_of(status), f"the provider answered {status}")


def _error(status: int, error: Json) -> LlmFault:
    message, kind, code, param = (_text(error.get(name)) for name in ("message", "type", "code", "param"))
    google = _text(error.get("status"))
    if google is not None:
        kind, code = GOOGLE.get(google, "api_error"), google
    return LlmFault(kind or kind_of(status), message or f"the provider answered {status}", code, param)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _openai(status: int, fault: LlmFault) -> Json:
    return {"error": {"message": fault.message, "type": fault.kind, "param": fault.param, "code": fault.code}}


def _messages(status: int, fault: LlmFault) -> Json:
    kind = fault.kind if fault.kind in ERROR_TYPES else kind_of(status)
    return {"type": "error", "error": {"type": kind, "message": fault.message}}


def _google(status: int, fault: LlmFault) -> Json:
    word = GOOGLE_BY_STATUS.get(status, "INVALID_ARGUMENT" if 400 <= status < 500 else "INTERNAL")
    return {"error": {"code": status, "message": fault.message, "status": word}}


def _cohere(status: int, fault: LlmFault) -> Json:
    return {"message": fault.message}


WRITERS: dict[str, Callable[[int, LlmFault], Json]] = {
    "completions": _openai,
    "responses": _openai,
    "embeddings": _openai,
    "realtime": _openai,
    "messages": _messages,
    "count_tokens": _messages,
    "gemini": _google,
    "gemini_count_tokens": _google,
    "rerank": _cohere,
}


def write(format: str, status: int, fault: LlmFault) -> bytes:
    """Return the body of an error for a client of this format."""
    return dump_json(WRITERS.get(format, _openai)(status, fault))


def stream_event(format: str, fault: LlmFault) -> bytes:
    """Return the error event for a broken stream in the client's format."""
    if format == "messages":
        return b"event: error\ndata: " + write(format, 500, fault) + b"\n\n"
    if format == "responses":
        error = {"type": "error", "code": fault.code or fault.kind, "message": fault.message, "param": None,
                 "sequence_number": 0}  # fmt: skip
        return b"event: error\ndata: " + dump_json(error) + b"\n\n"
    return b"data: " + write(format, 500, fault) + b"\n\n"
