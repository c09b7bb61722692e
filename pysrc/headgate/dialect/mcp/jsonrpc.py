"""JSON-RPC 2.0 messages of MCP. They are classified and changed without decoding their contents.

Source: https://www.jsonrpc.org/specification.
"""

from __future__ import annotations

import json

from headgate.dialect.mcp.methods import PROGRESS
from headgate_engine.peek.rpc import NotAMessage, RpcKind, RpcMessage, parse

__all__ = ["NotAMessage", "RpcKind", "RpcMessage", "parse"]

# Error codes of JSON-RPC 2.0 section 5.1, and of MCP.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022


def error_message(raw_id: bytes | None, code: int, message: str, data: object = None) -> bytes:
    """Return an error response. With `raw_id` None its id is null."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    body = json.dumps(error, separators=(",", ":")).encode()
    return b'{"jsonrpc":"2.0","id":' + (raw_id or b"null") + b',"error":' + body + b"}"


def notification(method: str, params: dict[str, object]) -> bytes:
    """Return a notification."""
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}, separators=(",", ":")).encode()


def same_id(raw_id: bytes | None, value: object) -> bool:
    """Return whether a raw JSON id equals the decoded `value`. A number never equals a string."""
    if raw_id is None or isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        found = json.loads(raw_id)
    except ValueError:
        return False
    return isinstance(found, str) == isinstance(value, str) and bool(found == value)


def agree(one: bytes | None, other: bytes | None) -> bool:
    """Return whether two raw JSON ids are equal, even if they are written differently."""
    if one == other or one is None or other is None:
        return one is not None and one == other
    try:
        return same_id(one, json.loads(other))
    except (ValueError, RecursionError):
        # An integer of thousands of digits is valid JSON, but int() refuses it.
        return False


def subscription_id(message: RpcMessage) -> object:
    """Return the id of the `subscriptions/listen` request that a notification belongs to, None if it has none."""
    if b'io.modelcontextprotocol/subscriptionId"' not in message.params:
        return None
    meta = message.decoded_params().get("_meta")
    return meta.get("io.modelcontextprotocol/subscriptionId") if isinstance(meta, dict) else None


def progress_token(message: RpcMessage) -> object:
    """Return the progress token of a request or of a progress notification, None if there is none."""
    if b'"progressToken"' not in message.params:
        return None
    params = message.decoded_params()
    if message.kind is RpcKind.REQUEST:
        meta = params.get("_meta")
        return meta.get("progressToken") if isinstance(meta, dict) else None
    return params.get("progressToken") if message.method == PROGRESS else None
