"""JSON-RPC 2.0 messages of MCP: told apart and re-labelled without building their contents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from headgate_engine.peek.json import PeekError, RpcPeek

# Error codes: JSON-RPC 2.0 section 5.1, and MCP's own.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
UNSUPPORTED_VERSION = -32022

# Kinds of JSON values as RpcPeek tells them (peek/json.pxd).
STRING, NUMBER, NULL = 1, 2, 5


class Kind(Enum):
    """What a message is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"


class NotAMessage(ValueError):
    """The text is no JSON-RPC message; `code` says why."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `text` are its bytes as received, `raw_id` those of its id, `params` those of its params."""

    kind: Kind
    text: bytes
    method: str | None
    raw_id: bytes | None
    id_span: tuple[int, int]
    params: bytes

    def with_id(self, raw_id: bytes) -> bytes:
        """Return the message with another id; nothing else changes."""
        start, stop = self.id_span
        return self.text[:start] + raw_id + self.text[stop:]


def parse(text: bytes) -> Message:
    """Return the message; raises NotAMessage. Batches (2025-03-26) are refused."""
    peek = RpcPeek()
    try:
        peek.peek(text)
    except PeekError as error:
        raise NotAMessage(PARSE_ERROR, f"Parse error: {error}") from None
    if peek.is_array:
        raise NotAMessage(INVALID_REQUEST, "batches are not supported")
    if not peek.is_object:
        raise NotAMessage(INVALID_REQUEST, "not a JSON-RPC message")
    if peek.duplicate:
        # A target could read the other one of two members with one name.
        raise NotAMessage(INVALID_REQUEST, "a member stands twice")
    span = peek.id_span() if peek.has_id else (0, 0)
    raw_id = text[span[0] : span[1]] if peek.has_id else None
    params = b""
    if peek.has_params:
        start, stop = peek.params_span()
        params = text[start:stop]
    method = peek.method_of(text)
    if peek.has_method:
        if method is None:
            raise NotAMessage(INVALID_REQUEST, "the method is not a string")
        if raw_id is None:
            return Message(Kind.NOTIFICATION, text, method, None, span, params)
        if peek.id_kind not in (STRING, NUMBER):
            raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
        return Message(Kind.REQUEST, text, method, raw_id, span, params)
    if peek.has_result or peek.has_error:
        return Message(Kind.RESPONSE, text, None, raw_id, span, params)
    raise NotAMessage(INVALID_REQUEST, "neither a request nor a response")


def error_message(raw_id: bytes | None, code: int, message: str, data: object = None) -> bytes:
    """Return an error response; without an id it is null."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    body = json.dumps(error, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","id":' + (raw_id or b"null") + b',"error":' + body + b"}"


def notification(method: str, params: dict[str, object]) -> bytes:
    """Return a notification."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}, separators=(",", ":")).encode()


def progress_token(message: Message) -> object:
    """Return the token under which progress of a request is told, or that a progress notification carries."""
    if b'"progressToken"' not in message.params:
        return None
    params = json.loads(message.params)
    if not isinstance(params, dict):
        return None
    if message.kind is Kind.REQUEST:
        meta = params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None
    return params.get("progressToken")
