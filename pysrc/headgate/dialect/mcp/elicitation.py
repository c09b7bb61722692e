"""What a server with sessions asks in the middle of a call, for clients of revision 2026-07-28: a result of type
`input_required` holds the questions, the client repeats its request with the answers (multi-round-trip requests).
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
    Message,
    error_message,
)

Json = dict[str, Any]
# What a client must have said it can do to be asked.
CAPABILITY: Final = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
# Requests whose result may be that something is wanted first.
METHODS: Final = frozenset(("tools/call", "prompts/get", "resources/read"))
STATE: Final = "requestState"
ANSWERS: Final = "inputResponses"
STATE_MARK: Final = b'"requestState"'
MAX_QUESTION: Final = 1024 * 1024
DIGEST_BYTES: Final = 16


# -- what the client said ----------------------------------------------------------------------------------------------
def capabilities_of(message: Message) -> Json:
    """Return what a client of revision 2026-07-28 can do, as its request says."""
    if modern.CLIENT_CAPABILITIES.encode() not in message.params:
        return {}
    meta = message.decoded_params().get("_meta")
    found = meta.get(modern.CLIENT_CAPABILITIES) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def askable(capabilities: Json) -> bool:
    """Tell whether a client can be asked anything."""
    return any(isinstance(capabilities.get(name), dict) for name in CAPABILITY.values())


def legacy_capabilities(capabilities: Json) -> Json:
    """Return what a server with sessions is told of a client: nothing that the gateway could not bring about."""
    found: Json = {
        name: capabilities[name]
        for name in ("sampling", "elicitation", "experimental")
        if isinstance(capabilities.get(name), dict)
    }
    if isinstance(capabilities.get("roots"), dict):
        # There is no way to tell that they have changed.
        found["roots"] = {}
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict):
        kept = {key: value for key, value in extensions.items() if key != bridging.TASKS_EXTENSION}
        if kept:
            found["extensions"] = kept
    return found


def state_of(message: Message) -> str | None:
    """Return the state that a client brings back, None for a request without one."""
    if STATE_MARK not in message.params:
        return None
    found = message.decoded_params().get(STATE)
    return found if isinstance(found, str) else None


def answers_of(message: Message) -> dict[str, bytes]:
    """Return the client's answers by the keys of the questions, byte for byte; what is no object is none."""
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


def digest_of(message: Message) -> bytes:
    """Return a digest of what a request asks for: the same for one that is repeated with answers."""
    params = message.decoded_params()
    kept = {key: value for key, value in params.items() if key not in ("_meta", ANSWERS, STATE)}
    text = json.dumps([message.method, kept], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


# -- what the server asks ----------------------------------------------------------------------------------------------
def own_answer(question: Message, capabilities: Json) -> bytes | None:
    """Return the gateway's answer to a request of a server, None where it is for the client to answer."""
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


def _missing(question: Message, able: Json) -> str | None:
    """Return what a client that can be asked in general cannot do here (2025-11-25, elicitation and sampling)."""
    if question.method == "elicitation/create":
        mode = question.decoded_params().get("mode", "form")
        # No mode at all means forms: that is what revisions before 2025-11-25 knew.
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
    """Return the response to a request of a server that nobody has room for."""
    return error_message(raw_id, INTERNAL_ERROR, "too many calls wait for their clients")


def as_input(question: Message) -> bytes:
    """Return a server's request as it stands in a result of type `input_required`."""
    method = json.dumps(question.method).encode()
    return b'{"method":' + method + b',"params":' + (question.params or b"{}") + b"}"


def input_required(raw_id: bytes | None, questions: dict[str, bytes], state: str) -> bytes:
    """Return the response that has the client answer questions first."""
    inner = b",".join(json.dumps(key).encode() + b":" + value for key, value in questions.items())
    result = b'{"resultType":"input_required","inputRequests":{%b},"requestState":%b}'
    return answer(raw_id, result % (inner, json.dumps(state).encode()))


# -- clients with a session --------------------------------------------------------------------------------------------
def cannot_answer(message: Message, question: Json, capabilities: Json) -> bytes | None:
    """Return the error for a client with a session that a server without wants something of that it never said it
    could do; None where it can.
    """
    name = CAPABILITY.get(str(question.get("method")))
    if name is not None and isinstance(capabilities.get(name), dict):
        return None
    if name is None:
        reason = f"the server wants something that no client has: {str(question.get('method'))[:80]}"
        return error_message(message.raw_id, INTERNAL_ERROR, reason)
    return error_message(
        message.raw_id, MISSING_CAPABILITY, f"the server needs {name}", {"requiredCapabilities": {name: {}}}
    )
