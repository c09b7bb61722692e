"""Errors of providers and of the gateway, in the shapes of all formats."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from headgate.dialect.llm.contract import Json
from headgate_engine.llm.eventstream import encode_frame
from headgate_engine.llm.translate.amazon import BROKEN
from headgate_engine.llm.translate.fault_kinds import WORDS, kind_of, kind_of_status, status_of
from headgate_engine.llm.translate.readers import Garbage, load_json
from headgate_engine.llm.translate.writers import dump_json

# OpenAI's codes for kinds of errors whose provider gives none (https://platform.openai.com/docs/guides/error-codes).
OPENAI_CODES = {
    "authentication_error": "invalid_api_key",
    "not_found_error": "model_not_found",
    "rate_limit_error": "rate_limit_exceeded",
}
TOO_LONG = "context_length_exceeded"
# How vendors without codes say that a prompt does not fit into the context window, and how Messages clients read it.
LONG_PROMPTS = (
    "prompt is too long", "input is too long for requested model", "exceeds the maximum number of tokens allowed",
    "input length and `max_tokens` exceed context limit", "maximum context length", "maximum prompt length",
    "exceeds the available context size",
)  # fmt: skip
# Codes that say of such an error only that the request is at fault.
GENERAL_CODES = frozenset((None, "INVALID_ARGUMENT", "invalid_request_error", "validationException"))
# What Google says of a bad key, with status 400 and INVALID_ARGUMENT.
BAD_KEY = "API_KEY_INVALID"
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
# The same by what an error means, for statuses that Google does not use.
GOOGLE_BY_KIND = {
    "overloaded_error": "UNAVAILABLE",
    "timeout_error": "DEADLINE_EXCEEDED",
    "billing_error": "FAILED_PRECONDITION",
    "api_error": "INTERNAL",
}
# What Bedrock's clients look for in AWS_FIELD, by HTTP status
# (https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html); other statuses are of the client or not.
AWS_TYPES = {
    401: "UnrecognizedClientException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    429: "ThrottlingException",
    500: "InternalServerException",
}
AWS_FIELD = b"x-amzn-errortype"
GOOGLE_FORMATS = frozenset(("gemini", "gemini_count_tokens"))
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
REQUEST_INFO = "type.googleapis.com/google.rpc.RequestInfo"
# A time there: seconds, with up to nine decimals.
DELAY = re.compile(r"(\d{1,8}(?:\.\d{1,9})?)s")
# Members in which errors without an object say what is wrong, and members of such bodies.
MESSAGES = ("message", "Message", "detail", "error_description")
BARE_ERROR = frozenset((*MESSAGES, "error", "code", "status", "type", "__type", "success"))
# The maximum length in bytes of an error message from a body that is not JSON.
MAX_TEXT = 2000
# Errors of a list that are told.
MAX_LISTED = 20


class LlmFault(NamedTuple):
    """One error. `kind` is an error type of Messages and completions; `code` and `param` are those of OpenAI."""

    kind: str
    message: str
    code: str | None = None
    param: str | None = None


def read(status: int, body: bytes) -> LlmFault:
    """Return the error in the body of a provider's response. The format is detected. Never raises."""
    try:
        found = load_json(body)
    except Garbage:
        text = body[:MAX_TEXT].decode("utf-8", "replace").strip()
        return _told(status, text or f"the provider answered {status}")
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if not isinstance(found, dict):
        return _told(status, f"the provider answered {status}")
    error = found.get("error")
    if isinstance(error, dict):
        return _error(status, error)
    for name in (*MESSAGES, "error"):
        if isinstance(found.get(name), str) and found[name]:
            return _told(status, found[name])
    for name in (*MESSAGES, "error", "errors"):
        if (text := _listed(found.get(name))):
            return _told(status, text)
    return _told(status, f"the provider answered {status}")


def _listed(value: object) -> str:
    """Return the texts of a list of errors, "" for anything else. FastAPI's say where they are.

    Source: https://fastapi.tiangolo.com/tutorial/handling-errors/; Mistral has them a level below `message`.
    """
    if isinstance(value, dict):
        value = value.get("detail")
    told: list[str] = []
    for one in value[:MAX_LISTED] if isinstance(value, list) else ():
        if isinstance(one, dict):
            text, place = _text(one.get("msg")) or _text(one.get("message")), one.get("loc")
            where = ".".join(map(str, place)) if isinstance(place, list) else ""
            one = f"{where}: {text}" if text and where else text
        if (text := _text(one)):
            told.append(text)
    return "; ".join(told)[:MAX_TEXT]


def inside(body: object) -> tuple[int, LlmFault] | None:
    """Return status and error of a provider's 2xx response that is an error, None for anything else.

    The status is the one that the error means; 502 for an error that says nothing of that.
    """
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return None
    error = body.get("error")
    if not error:
        bare = body.keys() <= BARE_ERROR and next((body[name] for name in MESSAGES if _text(body.get(name))), None)
        return (502, LlmFault("api_error", bare)) if bare else None
    if not isinstance(error, dict):
        return 502, LlmFault("api_error", _text(error) or "the provider reports an error")
    code = next((one for one in (error.get("code"), body.get("code")) if type(one) is int and 400 <= one < 600), 0)
    if not code:
        words = [word for name in ("status", "code", "type") if (word := _text(error.get(name)))]
        known = next((word for word in words if word in WORDS), None)
        code = 502 if known is None or WORDS[known] == "api_error" else status_of(known, None)
    return code, _error(code, error)


def retry_in(body: bytes) -> int:
    """Return the seconds after which Google lets a client ask again (`google.rpc.RetryInfo`), 0 if it does not say."""
    try:
        found = load_json(body)
    except Garbage:
        return 0
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    error = found.get("error") if isinstance(found, dict) else None
    details = error.get("details") if isinstance(error, dict) else None
    for one in details if isinstance(details, list) else ():
        if isinstance(one, dict) and one.get("@type") == RETRY_INFO:
            delay = DELAY.fullmatch(_text(one.get("retryDelay")) or "")
            return 0 if delay is None else math.ceil(float(delay[1]))
    return 0


def _told(status: int, message: str) -> LlmFault:
    return LlmFault(kind_of_status(status), message, TOO_LONG if is_too_long(status, message) else None)


def is_too_long(status: int, message: str) -> bool:
    """Return whether an error says that the prompt does not fit into the context window."""
    return status == 400 and any(words in message.lower() for words in LONG_PROMPTS)


def _error(status: int, error: Json) -> LlmFault:
    message, kind, code, param = (_text(error.get(name)) for name in ("message", "type", "code", "param"))
    google = _text(error.get("status"))
    if google is not None:
        reasons = [one.get("reason") for one in error.get("details") or () if isinstance(one, dict)]
        kind, code = kind_of(google, None, 0), google
        if BAD_KEY in reasons:
            kind = "authentication_error"
            code = OPENAI_CODES[kind]
    message = message or f"the provider answered {status}"
    if is_too_long(status, message) and code in GENERAL_CODES:
        code = TOO_LONG
    return LlmFault(kind or kind_of(None, code, status), message, code, param)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _openai(status: int, fault: LlmFault) -> Json:
    code = fault.code or OPENAI_CODES.get(kind_of(fault.kind, None, status))
    return {"error": {"message": fault.message, "type": fault.kind, "param": fault.param, "code": code}}


def _messages(status: int, fault: LlmFault) -> Json:
    message = fault.message
    if fault.code == TOO_LONG and LONG_PROMPTS[0] not in message.lower():
        # Clients know by these words that they have to shorten the conversation.
        message = f"{LONG_PROMPTS[0]}: {message}"
    return {"type": "error", "error": {"type": kind_of(fault.kind, fault.code, status), "message": message}}


def _google(status: int, fault: LlmFault) -> Json:
    kind = kind_of(fault.kind, fault.code, status)
    word = GOOGLE_BY_STATUS.get(status) or GOOGLE_BY_KIND.get(kind, "INVALID_ARGUMENT")
    return {"error": {"code": status, "message": fault.message, "status": word}}


def _bare(status: int, fault: LlmFault) -> Json:
    """Return what Cohere and Bedrock tell; Bedrock's kind of error is in a header field (AWS_TYPES)."""
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
    "rerank": _bare,
    "converse": _bare,
}


def write(format: str, status: int, fault: LlmFault, wait_s: int = 0) -> bytes:
    """Return the body of an error for a client of this format. `wait_s`: until it may ask again, 0: not told."""
    found = WRITERS.get(format, _openai)(status, fault)
    if wait_s and format in GOOGLE_FORMATS:
        # Google's clients look here instead of at `retry-after`.
        found["error"]["details"] = [{"@type": RETRY_INFO, "retryDelay": f"{wait_s}s"}]
    return dump_json(found)


def with_request_id(format: str, body: bytes, request_id: str) -> bytes:
    """Return the body of an error with the id of its request, where the format has a place for one.

    Sources: https://platform.claude.com/docs/en/api/errors, `google.rpc.RequestInfo` in google/rpc/error_details.proto.
    """
    if format != "messages" and format not in GOOGLE_FORMATS:
        return body
    found: Any = load_json(body)
    if format == "messages":
        found["request_id"] = request_id
    else:
        found["error"].setdefault("details", []).append({"@type": REQUEST_INFO, "requestId": request_id})
    return dump_json(found)


def aws_type(status: int) -> bytes:
    """Return the type of an error for Bedrock's clients, which is the code of what they raise."""
    return AWS_TYPES.get(status, "ValidationException" if status < 500 else "ServiceUnavailableException").encode()


def stream_event(format: str, fault: LlmFault) -> bytes:
    """Return the error event for a broken stream in the client's format."""
    if format == "converse":
        headers = {":exception-type": BROKEN, ":content-type": "application/json", ":message-type": "exception"}
        return encode_frame(headers, write(format, 500, fault))
    if format == "messages":
        return b"event: error\ndata: " + write(format, 500, fault) + b"\n\n"
    if format == "responses":
        error = {"type": "error", "code": fault.code or fault.kind, "message": fault.message, "param": None,
                 "sequence_number": 0}  # fmt: skip
        return b"event: error\ndata: " + dump_json(error) + b"\n\n"
    return b"data: " + write(format, 500, fault) + b"\n\n"
