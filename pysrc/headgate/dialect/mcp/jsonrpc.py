"""JSON-RPC 2.0 messages of MCP: told apart and re-labelled without building their contents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from headgate.dialect.mcp.methods import NAME_SOURCE, PROGRESS
from headgate_engine.peek.json import PeekError, RpcPeek

# Error codes: JSON-RPC 2.0 section 5.1, and MCP's own.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
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
    """One message. `text` are its bytes as received, `raw_id` those of its id, `params` those of its params (b"" for
    none). `is_error` is set for an error response.
    """

    kind: Kind
    text: bytes
    method: str | None
    raw_id: bytes | None
    id_span: tuple[int, int]
    params: bytes
    is_error: bool
    _peek: RpcPeek

    def with_id(self, raw_id: bytes) -> bytes:
        """Return the message with another id; nothing else changes."""
        start, stop = self.id_span
        return self.text[:start] + raw_id + self.text[stop:]

    def with_params(self, params: bytes) -> bytes:
        """Return the message, which has params, with others; nothing else changes."""
        start, stop = self._peek.params_span()
        return self.text[:start] + params + self.text[stop:]

    @property
    def name(self) -> str | None:
        """What the message is about, by NAME_SOURCE; None when its method has no such thing."""
        match NAME_SOURCE.get(self.method or ""):
            case "name":
                return self._peek.name
            case "uri":
                return self._peek.uri
            case "taskId":
                return self._peek.task_id
        return None

    @property
    def uri(self) -> str | None:
        """`params.uri`."""
        return self._peek.uri

    @property
    def protocol_version(self) -> str | None:
        """`params.protocolVersion`, as `initialize` has it."""
        return self._peek.protocol_version

    @property
    def meta_version(self) -> str | None:
        """The revision that `params._meta` names; None when it names none."""
        return self._peek.meta_version

    @property
    def has_client_capabilities(self) -> bool:
        """Whether `params._meta` tells what the client can do."""
        return self._peek.has_client_capabilities

    def decoded_params(self) -> dict[str, Any]:
        """Return the params as objects, {} when there are none. For small messages: this builds all of them."""
        try:
            params = json.loads(self.params or b"{}")
        except ValueError:
            # An integer of thousands of digits is JSON, and more than int() takes.
            return {}
        return params if isinstance(params, dict) else {}


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
    if peek.jsonrpc != "2.0":
        raise NotAMessage(INVALID_REQUEST, 'jsonrpc is not "2.0"')
    kind = _kind(peek)
    span = peek.id_span() if peek.has_id else (0, 0)
    raw_id = text[span[0] : span[1]] if peek.has_id else None
    params = b""
    if peek.has_params:
        start, stop = peek.params_span()
        params = text[start:stop]
        if kind is not Kind.RESPONSE and params[:1] != b"{":
            raise NotAMessage(INVALID_PARAMS, "params is not an object")
    return Message(kind, text, peek.method_of(text), raw_id, span, params, peek.has_error, peek)


def _kind(peek: RpcPeek) -> Kind:
    """Tell what an object is by its members (JSON-RPC 2.0 sections 4 and 5)."""
    if peek.has_method:
        if not peek.method_is_string:
            raise NotAMessage(INVALID_REQUEST, "the method is not a string")
        if not peek.has_id:
            return Kind.NOTIFICATION
        if peek.id_kind not in (STRING, NUMBER):
            raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
        return Kind.REQUEST
    if peek.has_result == peek.has_error:
        raise NotAMessage(INVALID_REQUEST, "neither a request nor a response")
    # An error that belongs to no request has a null id (section 5), or none in what servers really send.
    if peek.has_result and peek.id_kind not in (STRING, NUMBER):
        raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
    if peek.id_kind not in (STRING, NUMBER, NULL, 0):
        raise NotAMessage(INVALID_REQUEST, "an id is a string or a number")
    return Kind.RESPONSE


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


def same_id(raw_id: bytes | None, value: object) -> bool:
    """Tell whether an id as it was written is the decoded `value`; a number is never a string."""
    if raw_id is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        found = json.loads(raw_id)
    except ValueError:
        return False
    return isinstance(found, str) == isinstance(value, str) and bool(found == value)


def subscription_id(message: Message) -> object:
    """Return the id of the `subscriptions/listen` that a notification is for, None when it says none."""
    if b'io.modelcontextprotocol/subscriptionId"' not in message.params:
        return None
    meta = message.decoded_params().get("_meta")
    return meta.get("io.modelcontextprotocol/subscriptionId") if isinstance(meta, dict) else None


def progress_token(message: Message) -> object:
    """Return the token under which progress of a request is told, or that a progress notification carries."""
    if b'"progressToken"' not in message.params:
        return None
    params = message.decoded_params()
    if message.kind is Kind.REQUEST:
        meta = params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None
    return params.get("progressToken") if message.method == PROGRESS else None
