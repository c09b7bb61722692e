"""Revision 2026-07-28, which has no sessions.

Each request has in `_meta` the data that `initialize` carries in earlier revisions, and in its headers the data that a
proxy needs. Each result tells in `resultType` whether it is complete.

Source: https://modelcontextprotocol.io/specification/2026-07-28/changelog.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from headgate.dialect.mcp import mirrored, versions
from headgate.dialect.mcp.edit import replaced, with_members, without_members
from headgate.dialect.mcp.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    UNSUPPORTED_VERSION,
    RpcKind,
    RpcMessage,
    parse,
)
from headgate.dialect.mcp.methods import DISCOVER, INITIALIZE, MODERN_REQUESTS, NAME_SOURCE, REMOVED
from headgate.document.lazy_dataclass import dataclass

NAMESPACE: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = NAMESPACE + "protocolVersion"
CLIENT_CAPABILITIES: Final = NAMESPACE + "clientCapabilities"
CLIENT_INFO: Final = NAMESPACE + "clientInfo"
SERVER_INFO: Final = NAMESPACE + "serverInfo"
LOG_LEVEL: Final = NAMESPACE + "logLevel"
REQUEST_META: Final = frozenset((PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL))
# Params that servers with sessions must not get: answers and state of the client, and `task`, which begins a task in
# earlier revisions.
OWN_PARAMS: Final = ("inputResponses", "requestState", "task")
TASKS: Final = NAMESPACE + "tasks"
SUBSCRIPTION: Final = NAMESPACE + "subscriptionId"

# Requests whose results have caching hints.
CACHEABLE: Final = frozenset(
    (
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    )
)
UNCACHED: Final[dict[str, object]] = {"ttlMs": 0, "cacheScope": "private"}
COMPLETE: Final[dict[str, object]] = {"resultType": "complete"}
# HTTP statuses by error code. Responses with other error codes have status 200, as results have.
STATUSES: Final = {
    METHOD_NOT_FOUND: 404,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
}
# Error codes that show that a server supports this revision.
MODERN_CODES: Final = frozenset((HEADER_MISMATCH, MISSING_CAPABILITY, INVALID_PARAMS))


@dataclass(frozen=True, slots=True)
class McpFault:
    """The refusal of a request: HTTP status, JSON-RPC error code and message."""

    status: int
    code: int
    message: str


def fault(message: RpcMessage, header: str | None, fields: Iterable[tuple[str, str]], known: bool) -> McpFault | None:
    """Return the fault of a POST request with the version header `header`, None if there is none.

    With `known`, methods that are not in the tables are refused. The order follows the MCP specification: the method is
    checked before `_meta`, and `_meta` before the mirrored headers.
    """
    if not versions.is_modern(header):
        if message.meta_version is None or (header is None and not versions.is_modern(message.meta_version)):
            return None
        return McpFault(400, HEADER_MISMATCH, f"{versions.HEADER} does not match the body")
    found = _request_fault(message, header, known) if message.kind is RpcKind.REQUEST else None
    return found or _missing_field(message, fields)


def unknown_method(method: str) -> McpFault | None:
    """Return the refusal of a method that this revision does not have, None for a method that it has."""
    if method in MODERN_REQUESTS:
        return None
    return McpFault(404, METHOD_NOT_FOUND, f"method not found: {method[:80]}")


def _request_fault(message: RpcMessage, header: str | None, known: bool) -> McpFault | None:
    method = message.method or ""
    if method in REMOVED or (known and method not in MODERN_REQUESTS):
        return unknown_method(method)
    if message.meta_version is None:
        if method not in MODERN_REQUESTS:
            return None
        return McpFault(400, INVALID_PARAMS, f"invalid request parameters: _meta has no {PROTOCOL_VERSION}")
    if message.meta_version != header:
        return McpFault(400, HEADER_MISMATCH, f"{versions.HEADER} does not match the body")
    if not message.has_client_capabilities and method in MODERN_REQUESTS:
        return McpFault(400, INVALID_PARAMS, f"invalid request parameters: _meta has no {CLIENT_CAPABILITIES}")
    if method in NAME_SOURCE and message.name is None:
        return McpFault(400, INVALID_PARAMS, f"invalid request parameters: there is no {NAME_SOURCE[method]}")
    return None


def _missing_field(message: RpcMessage, fields: Iterable[tuple[str, str]]) -> McpFault | None:
    if message.method is None:
        return None
    present = {name.lower() for name, _ in fields}
    wanted = [mirrored.METHOD_HEADER] + ([mirrored.NAME_HEADER] if message.name is not None else [])
    for name in wanted:
        if name not in present:
            return McpFault(400, HEADER_MISMATCH, f"{name} is missing")
    return None


def completed(method: str, text: bytes) -> bytes:
    """Return a response, with the members added that this revision requires in results and the server has not set."""
    more = {**COMPLETE, **UNCACHED} if method in CACHEABLE else COMPLETE
    return with_members(text, ("result",), more)


def legacy_words(message: RpcMessage) -> RpcMessage:
    """Return a request without the parts that only servers of this revision understand: OWN_PARAMS and REQUEST_META.

    `task` is removed as well: it would begin a task in the form of an earlier revision.
    """
    text = message.text
    if any(f'"{name}"'.encode() in message.params for name in OWN_PARAMS):
        text = without_members(text, ("params",), OWN_PARAMS)
    if NAMESPACE.encode() not in message.params:
        return message if text is message.text else parse(text)
    meta = message.decoded_params().get("_meta")
    if not isinstance(meta, dict):
        return message if text is message.text else parse(text)
    kept = {key: value for key, value in meta.items() if key not in REQUEST_META}
    return parse(replaced(text, ("params", "_meta"), kept))


def discover_request() -> RpcMessage:
    """Return a `server/discover` request of the gateway itself."""
    meta = {PROTOCOL_VERSION: versions.MODERN, CLIENT_CAPABILITIES: {}}
    asked = {"jsonrpc": "2.0", "id": "gw_discover", "method": DISCOVER, "params": {"_meta": meta}}
    return parse(json.dumps(asked).encode())


def revisions_of(text: bytes) -> list[str]:
    """Return the revisions in a response to `server/discover`, [] for an error response."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    result = found.get("result") if isinstance(found, dict) else None
    supported = result.get("supportedVersions") if isinstance(result, dict) else None
    return [one for one in supported if isinstance(one, str)] if isinstance(supported, list) else []


def synthetic_initialize(version: str, name: str, build: str, capabilities: dict[str, Any]) -> RpcMessage:
    """Return an `initialize` request of the gateway to a server with sessions, for a client without a session.

    `capabilities` are those of the client that the gateway can pass on. The server sends no requests beyond them.
    """
    info = {"name": name, "version": build}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
    return parse(json.dumps({"jsonrpc": "2.0", "id": 0, "method": INITIALIZE, "params": params}).encode())


def is_legacy_refusal(status: int, body: bytes) -> bool:
    """Return whether a response to a request of this revision shows that the server does not support the revision.

    Servers with sessions refuse a request without a session with 400, 404, 405 or 406 and any body. Servers of this
    revision use its error codes, or "method not found".
    """
    if status not in (400, 404, 405, 406):
        return False
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError):
        return True
    return not isinstance(error, dict) or is_legacy_error(error)


def is_legacy_error(error: dict[str, Any]) -> bool:
    """Return whether a JSON-RPC error shows that the server does not support this revision."""
    code = error.get("code")
    if code == UNSUPPORTED_VERSION:
        data = error.get("data")
        supported = data.get("supported") if isinstance(data, dict) else None
        return isinstance(supported, list) and not any(
            isinstance(one, str) and versions.is_modern(one) for one in supported
        )
    return code not in MODERN_CODES and code != METHOD_NOT_FOUND


def stripped_capabilities(params: dict[str, Any]) -> dict[str, Any]:
    """Return the params of `initialize` without the capabilities for requests of the server and for tasks.

    A client without a session cannot receive requests of the server.
    """
    given = params.get("capabilities")
    if not isinstance(given, dict):
        return params
    kept = {key: value for key, value in given.items() if key not in ("roots", "sampling", "elicitation", "tasks")}
    extensions = kept.get("extensions")
    if isinstance(extensions, dict) and TASKS in extensions:
        kept["extensions"] = {key: value for key, value in extensions.items() if key != TASKS}
        if not kept["extensions"]:
            del kept["extensions"]
    return {**params, "capabilities": kept}
