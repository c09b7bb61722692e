"""JSON-RPC 2.0 messages of MCP: told apart and re-labelled without building their contents."""

from __future__ import annotations

import json

from headgate.dialect.mcp.methods import PROGRESS
from headgate_engine.peek.rpc import Kind, Message, NotAMessage, parse

__all__ = ["Kind", "Message", "NotAMessage", "parse"]

# Error codes: JSON-RPC 2.0 section 5.1, and MCP's own.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


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


def agree(one: bytes | None, other: bytes | None) -> bool:
    """Tell whether two ids as they were written are one: JSON may write a text or a number in several ways."""
    if one == other or one is None or other is None:
        return one is not None and one == other
    try:
        return same_id(one, json.loads(other))
    except (ValueError, RecursionError):
        # An integer of thousands of digits is JSON, and more than int() takes.
        return False


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
