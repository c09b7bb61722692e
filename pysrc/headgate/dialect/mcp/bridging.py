"""Translation of messages between a client with a session and a server of revision 2026-07-28.

Source: https://modelcontextprotocol.io/specification/2026-07-28/changelog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final

from headgate.dialect.mcp import modern, versions
from headgate.dialect.mcp.edit import replaced, with_members, without_members
from headgate.dialect.mcp.jsonrpc import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    UNSUPPORTED_VERSION,
    NotAMessage,
    RpcKind,
    RpcMessage,
    error_message,
    parse,
)
from headgate.dialect.mcp.methods import LISTEN
from headgate.document.lazy_dataclass import dataclass

Json = dict[str, Any]
# Members of results that are not defined in revisions with sessions.
MODERN_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
# Capabilities that are not passed on: tasks of earlier revisions differ from those of the extension.
OTHER: Final = ("tasks",)
TASKS_EXTENSION: Final = modern.NAMESPACE + "tasks"
CHANGES: Final = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
UPDATES: Final = frozenset(
    (
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    )
)


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The capabilities and the name that a client has sent in `initialize`."""

    capabilities: Json = field(default_factory=dict)
    info: Json | None = None

    @classmethod
    def of_initialize(cls, params: Json) -> ClientIdentity:
        """Return the client described by the params of an `initialize` request."""
        given, info = params.get("capabilities"), params.get("clientInfo")
        kept = {key: value for key, value in given.items() if key not in OTHER} if isinstance(given, dict) else {}
        extensions = kept.get("extensions")
        if isinstance(extensions, dict):
            kept["extensions"] = {key: value for key, value in extensions.items() if key != TASKS_EXTENSION}
        return cls(kept, info if isinstance(info, dict) else None)

    @classmethod
    def of_meta(cls, meta: Json) -> ClientIdentity:
        """Return the client described by a result of `meta()`."""
        return cls(meta.get(modern.CLIENT_CAPABILITIES) or {}, meta.get(modern.CLIENT_INFO))

    def meta(self, level: str | None) -> Json:
        """Return `_meta` for every request of the client. `level` is its log level, if it has set one."""
        found: Json = {modern.PROTOCOL_VERSION: versions.MODERN, modern.CLIENT_CAPABILITIES: self.capabilities}
        if self.info is not None:
            found[modern.CLIENT_INFO] = self.info
        if level is not None:
            found[modern.LOG_LEVEL] = level
        return found


@dataclass(frozen=True, slots=True)
class BridgedNeeds:
    """The input that a server requires before it gives a result. `state` must be sent back with the input."""

    requests: dict[str, Json]
    state: object


# -- to the server -----------------------------------------------------------------------------------------------------
def fields_for(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return a client's headers without its session, with the version header of revision 2026-07-28."""
    own = (versions.HEADER, versions.SESSION_HEADER, "last-event-id")
    return [*((name, value) for name, value in fields if name.lower() not in own), (versions.HEADER, versions.MODERN)]


def worded(message: RpcMessage, meta: Json, **more: object) -> bytes:
    """Return a request with `meta` merged into `_meta`, and other params set. All other bytes are kept."""
    if not message.params:
        text = message.text.rstrip()
        return text[:-1] + b',"params":' + _json({"_meta": meta, **more}) + b"}"
    params = message.decoded_params()
    given = params.get("_meta")
    whole = {**given, **meta} if isinstance(given, dict) else meta
    text = message.text
    added: Json = {}
    for key, value in {"_meta": whole, **more}.items():
        if key in params:
            text = replaced(text, ("params", key), value)
        else:
            added[key] = value
    return with_members(text, ("params",), added)


def again(message: RpcMessage, meta: Json, answers: Json, state: object) -> bytes:
    """Return a repeated request with the input and the state that the server requires."""
    more: Json = {"inputResponses": answers} if answers else {}
    if state is not None:
        more["requestState"] = state
    return worded(message, meta, **more)


def listen_filter(capabilities: Json | None, uris: list[str]) -> Json:
    """Return the filter for `subscriptions/listen`: all lists whose changes the server announces, and resources.

    With `capabilities` None all lists are included. `uris` are the resources.
    """
    found: Json = {}
    for key, name in CHANGES.items():
        said = (capabilities or {}).get(key)
        if capabilities is None or (isinstance(said, dict) and said.get("listChanged") is True):
            found[name] = True
    if uris:
        found["resourceSubscriptions"] = uris
    return found


def listen_request(raw_id: bytes, wanted: Json, meta: Json) -> RpcMessage:
    """Return a `subscriptions/listen` request with a filter of listen_filter()."""
    params = {"notifications": wanted, "_meta": meta}
    text = _json({"jsonrpc": "2.0", "id": 0, "method": LISTEN, "params": params})
    return parse(parse(text).with_id(raw_id))


# -- to the client -----------------------------------------------------------------------------------------------------
def result(message: RpcMessage, found: Json) -> bytes:
    """Return the response to a request with this result."""
    return b'{"jsonrpc":"2.0","id":' + (message.raw_id or b"null") + b',"result":' + _json(found) + b"}"


def initialize_result(discovered: Json, wanted: str | None, name: str) -> Json:
    """Return the result of `initialize` from a result of `server/discover`.

    `wanted` is the client's protocol version, `name` the server's name if it gives none itself.
    """
    given = discovered.get("capabilities")
    capabilities = {key: value for key, value in given.items() if key not in OTHER} if isinstance(given, dict) else {}
    extensions = capabilities.get("extensions")
    if isinstance(extensions, dict):
        capabilities["extensions"] = {key: value for key, value in extensions.items() if key != TASKS_EXTENSION}
    meta = discovered.get("_meta")
    info = meta.get(modern.SERVER_INFO) if isinstance(meta, dict) else None
    found: Json = {
        "protocolVersion": wanted if wanted in versions.LEGACY else versions.LEGACY[-1],
        "capabilities": {"logging": {}, **capabilities},
        "serverInfo": info if isinstance(info, dict) else {"name": name, "version": "0"},
    }
    if isinstance(discovered.get("instructions"), str):
        found["instructions"] = discovered["instructions"]
    return found


def input_required(text: bytes) -> BridgedNeeds | None:
    """Return the input that a response requires from the client, None for a complete result."""
    if b"input_required" not in text:
        return None
    found = json.loads(text).get("result")
    if not isinstance(found, dict) or found.get("resultType") != "input_required":
        return None
    requests = found.get("inputRequests")
    given = requests if isinstance(requests, dict) else {}
    return BridgedNeeds(
        {key: one if isinstance(one, dict) else {} for key, one in given.items()}, found.get("requestState")
    )


def question(raw_id: bytes, asked: Json) -> bytes:
    """Return a request to the client for one entry of Wanted.requests."""
    text = _json({"jsonrpc": "2.0", "id": 0, "method": asked["method"], "params": asked.get("params") or {}})
    return parse(text).with_id(raw_id)


def legacy_response(text: bytes) -> bytes:
    """Return a response without the members that only clients of revision 2026-07-28 understand.

    A response that begins a task is replaced by an error: the server must not begin one unless the client supports
    tasks.
    """
    if b'"task"' in text and begins_task(text):
        reason = "the server started a task, which a client with a session cannot track"
        return error_message(parse(text).raw_id, INTERNAL_ERROR, reason)
    if not any(f'"{member}"'.encode() in text for member in MODERN_MEMBERS):
        return text
    return without_members(text, ("result",), MODERN_MEMBERS)


def begins_task(text: bytes) -> bool:
    """Return whether the result of a response is a task (extension of revision 2026-07-28)."""
    found = json.loads(text).get("result")
    return isinstance(found, dict) and found.get("resultType") == "task"


def subscription_notification(text: bytes) -> bytes | None:
    """Return a notification of a subscription without its subscription id, None for any other message."""
    try:
        message = parse(text)
    except NotAMessage:
        return None
    if message.kind is not RpcKind.NOTIFICATION or message.method not in UPDATES:
        return None
    params = message.decoded_params()
    meta = params.pop("_meta", None)
    kept = {key: value for key, value in meta.items() if key != modern.SUBSCRIPTION} if isinstance(meta, dict) else {}
    if kept:
        params["_meta"] = kept
    note: Json = {"jsonrpc": "2.0", "method": message.method}
    return _json({**note, "params": params} if params else note)


def has_no_sessions(status: int, body: bytes) -> bool:
    """Return whether a response to `initialize` shows that the server supports only revision 2026-07-28."""
    if status not in (200, 400, 404):
        return False
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError):
        return False
    if not isinstance(error, dict):
        return False
    if error.get("code") == UNSUPPORTED_VERSION:
        data = error.get("data")
        supported = data.get("supported") if isinstance(data, dict) else None
        return isinstance(supported, list) and bool(supported) and not set(map(str, supported)) & set(versions.LEGACY)
    # Servers that check `_meta` or its headers before the method answer with these codes, and have no sessions either.
    return error.get("code") == METHOD_NOT_FOUND or error.get("code") in modern.MODERN_CODES


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
