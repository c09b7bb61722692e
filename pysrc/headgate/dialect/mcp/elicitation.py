"""Requests of servers with sessions to clients of revision 2026-07-28 (multi-round-trip requests).

A request that such a server sends during a call is passed to the client in a result of type `input_required`. The
client then repeats its own request with the answers.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from headgate.dialect.mcp import bridging, modern
from headgate.dialect.mcp.edit import raw_member
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    RpcMessage,
    error_message,
)

Json = dict[str, Any]
# Requests of servers, and the client capability that each one needs.
CAPABILITY: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
# Requests whose result may be `input_required`.
METHODS: Final = frozenset(("tools/call", "prompts/get", "resources/read"))
STATE: Final = "requestState"
ANSWERS: Final = "inputResponses"
STATE_MARK: Final = b'"requestState"'
MAX_QUESTION: Final = 1024 * 1024
DIGEST_BYTES: Final = 16


# -- requests of the client --------------------------------------------------------------------------------------------
def capabilities_of(message: RpcMessage) -> Json:
    """Return the client capabilities in a request of revision 2026-07-28."""
    if modern.CLIENT_CAPABILITIES.encode() not in message.params:
        return {}
    meta = message.decoded_params().get("_meta")
    found = meta.get(modern.CLIENT_CAPABILITIES) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def askable(capabilities: Json) -> bool:
    """Return whether a client supports any request of a server."""
    return any(isinstance(capabilities.get(name), dict) for name in CAPABILITY.values())


def legacy_capabilities(capabilities: Json) -> Json:
    """Return the client capabilities for a server with sessions, reduced to those that the gateway can pass on."""
    found: Json = {
        name: capabilities[name]
        for name in ("sampling", "elicitation", "experimental")
        if isinstance(capabilities.get(name), dict)
    }
    if isinstance(capabilities.get("roots"), dict):
        # `listChanged` is omitted, because clients of revision 2026-07-28 cannot announce changes of roots.
        found["roots"] = {}
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict):
        kept = {key: value for key, value in extensions.items() if key != bridging.TASKS_EXTENSION}
        if kept:
            found["extensions"] = kept
    return found


def state_of(message: RpcMessage) -> str | None:
    """Return the `requestState` in a repeated request, None for a request without one."""
    if STATE_MARK not in message.params:
        return None
    found = message.decoded_params().get(STATE)
    return found if isinstance(found, str) else None


def answers_of(message: RpcMessage) -> dict[str, bytes]:
    """Return the client's answers as raw JSON by the keys of the questions. Only answers that are objects count."""
    raw = raw_member(message.params, ANSWERS) if ANSWERS.encode() in message.params else None
    if raw is None:
        return {}
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    kept = {key: raw_member(raw, key) for key, value in found.items() if isinstance(value, dict)}
    return {key: value for key, value in kept.items() if value is not None}


def digest_of(message: RpcMessage) -> bytes:
    """Return a digest of a request. A request that is repeated with answers has the same digest."""
    params = message.decoded_params()
    kept = {key: value for key, value in params.items() if key not in ("_meta", ANSWERS, STATE)}
    text = json.dumps([message.method, kept], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


# -- requests of the server --------------------------------------------------------------------------------------------
def own_answer(question: RpcMessage, capabilities: Json) -> bytes | None:
    """Return the gateway's own response to a request of a server, None if the client must answer it."""
    method = question.method or ""
    if method == "ping":
        return answer(question.raw_id, b"{}")
    name = CAPABILITY.get(method)
    if name is None:
        return error_message(question.raw_id, METHOD_NOT_FOUND, f"method not found: {method[:80]}")
    able = capabilities.get(name)
    if not isinstance(able, dict):
        return error_message(question.raw_id, METHOD_NOT_FOUND, f"the client cannot be asked: it has no {name}")
    if len(question.params) > MAX_QUESTION:
        return error_message(question.raw_id, INVALID_PARAMS, f"more than {MAX_QUESTION} bytes of params")
    missing = _missing(question, able)
    return error_message(question.raw_id, INVALID_PARAMS, missing) if missing else None


def _missing(question: RpcMessage, able: Json) -> str | None:
    """Return which part of a capability the client lacks for a request, None if it lacks nothing.

    Source: elicitation and sampling in https://modelcontextprotocol.io/specification/2025-11-25/client.
    """
    if question.method == "elicitation/create":
        mode = question.decoded_params().get("mode", "form")
        # A client without modes supports forms, which revisions before 2025-11-25 do not name.
        if str(mode) not in able and not (mode == "form" and not able):
            return f"the client has no elicitation of mode {str(mode)[:80]}"
    if question.method == "sampling/createMessage" and "tools" not in able:
        params = question.decoded_params()
        if "tools" in params or "toolChoice" in params:
            return "the client has no sampling with tools"
    return None


def answer(raw_id: bytes | None, result: bytes) -> bytes:
    """Return the response to a request of a server."""
    return b'{"jsonrpc":"2.0","id":' + (raw_id or b"null") + b',"result":' + result + b"}"


def refused(raw_id: bytes) -> bytes:
    """Return the error response to a request of a server when too many calls wait for their clients."""
    return error_message(raw_id, INTERNAL_ERROR, "too many calls wait for their clients")


def as_input(question: RpcMessage) -> bytes:
    """Return a server's request in the form for a result of type `input_required`."""
    method = json.dumps(question.method).encode()
    return b'{"method":' + method + b',"params":' + (question.params or b"{}") + b"}"


def input_required(raw_id: bytes | None, questions: dict[str, bytes], state: str) -> bytes:
    """Return the response of type `input_required` with questions for the client and the state to send back."""
    inner = b",".join(json.dumps(key).encode() + b":" + value for key, value in questions.items())
    result = b'{"resultType":"input_required","inputRequests":{%b},"requestState":%b}'
    return answer(raw_id, result % (inner, json.dumps(state).encode()))


# -- clients with a session --------------------------------------------------------------------------------------------
def cannot_answer(message: RpcMessage, question: Json, capabilities: Json) -> bytes | None:
    """Return the error response if a server without sessions requires input that the client does not support.

    None means that the client, which has a session, supports it.
    """
    name = CAPABILITY.get(str(question.get("method")))
    if name is not None and isinstance(capabilities.get(name), dict):
        return None
    if name is None:
        reason = f"the server requests something that no client supports: {str(question.get('method'))[:80]}"
        return error_message(message.raw_id, INTERNAL_ERROR, reason)
    return error_message(
        message.raw_id, MISSING_CAPABILITY, f"the server needs {name}", {"requiredCapabilities": {name: {}}}
    )
