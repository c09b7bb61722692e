"""The server side of StreamableHTTP: validates a request and passes its message to the target's service.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import re
from typing import Protocol

from headgate.backend.contract import BackendCall
from headgate.backend.mcp.failure import McpFailure
from headgate.backend.mcp.request_telemetry import Count, RequestTelemetry, log_without_message, telemetry_of
from headgate.dialect.mcp import modern, rebinding, versions
from headgate.dialect.mcp.edit import with_members
from headgate.dialect.mcp.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_REQUEST,
    UNSUPPORTED_VERSION,
    NotAMessage,
    RpcKind,
    RpcMessage,
    parse,
)
from headgate.dialect.mcp.methods import INITIALIZE
from headgate.dialect.mcp.mirrored import mismatch, version_mismatch
from headgate.document.lazy_dataclass import dataclass

STREAM_HEADERS = [
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
]

# Header fields of a trace (W3C Trace Context and Baggage).
TRACE = ("traceparent", "tracestate", "baggage")
# A session id may contain the sessions at 128 targets.
MAX_SESSION_ID = 16 * 1024
VISIBLE = re.compile(r"[!-~]+")


class McpService(Protocol):
    """The service behind the front; there is one for each transport of targets."""

    async def post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None: ...
    async def get(self, call: BackendCall, session_id: str | None) -> None: ...
    async def delete(self, call: BackendCall, session_id: str | None) -> None: ...


class Sessionless(Protocol):
    """The service for messages without a session. `unread`: it also forwards unknown methods."""

    @property
    def unread(self) -> bool: ...
    async def post(self, call: BackendCall, message: RpcMessage) -> None: ...
    async def revisions(self) -> list[str]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontOptions:
    """`stateless`: clients have no sessions. `local_only`: only programs and pages of this machine are admitted, which
    prevents DNS rebinding.
    """

    stateless: bool = False
    local_only: bool = False


class Front:
    """Handles the requests of one backend. `target` is the name of its only target in the log, None if there are
    several.

    `count` is called with the telemetry of every message with a method once it was answered. Clients of revision
    2026-07-28 have no sessions.
    """

    def __init__(
        self, service: McpService, sessionless: Sessionless, target: str | None, count: Count, options: FrontOptions
    ) -> None:
        self._service = service
        self._sessionless = sessionless
        self._target = target
        self._count = count
        self._options = options

    async def handle(self, call: BackendCall) -> None:
        """Answer one request."""
        raw_id = None
        try:
            # A relayed request was checked by the worker that received it.
            if self._options.local_only and telemetry_of(call) is None:
                check_local(call)
            session_id = call.headers.get(versions.SESSION_HEADER)
            check_session_id(session_id)
            if call.method == "POST":
                message = with_trace(call, read_post(call))
                raw_id = message.raw_id
                await self._check(call, message)
                # A relayed request has its telemetry in the worker that received it.
                if message.method is not None and telemetry_of(call) is None:
                    call.telemetry = RequestTelemetry(call, message, session_id, self._target, self._count)
                await self._post(call, message, session_id)
            elif self._options.stateless:
                call.reply(405, [("allow", "POST")], reason="MCP")
            elif call.method == "GET":
                log_without_message(call, session_id, self._target)
                check_sessions(call)
                check_get(call)
                await self._service.get(call, session_id)
            elif call.method == "DELETE":
                log_without_message(call, session_id, self._target)
                check_sessions(call)
                await self._service.delete(call, session_id)
            else:
                call.reply(405, [("allow", "GET, POST, DELETE")], reason="MCP")
        except McpFailure as failure:
            status, headers, body = failure.identified(call.context).answer(raw_id or failure.raw_id)
            call.add_log_field("mcp.error.message", failure.message)
            call.reply(status, headers, body, reason="MCP")

    async def _check(self, call: BackendCall, message: RpcMessage) -> None:
        """Raise McpFailure for header fields that contradict the message or each other."""
        try:
            check_version(call, message)
        except McpFailure as failure:
            if isinstance(failure.data, dict):
                failure.data = {**failure.data, "supported": await self._sessionless.revisions()}
            raise
        check_post(call, message, not self._sessionless.unread)

    async def _post(self, call: BackendCall, message: RpcMessage, session_id: str | None) -> None:
        if not versions.is_modern(call.headers.get(versions.HEADER)):
            if not self._options.stateless:
                await self._service.post(call, message, session_id)
                return
        elif session_id is not None:
            raise McpFailure(400, "this protocol revision has no sessions", INVALID_REQUEST)
        await self._sessionless.post(call, message)


def check_local(call: BackendCall) -> None:
    """Raise McpFailure 403 for a host or origin that is not local: a page may have sent it by DNS rebinding."""
    if not rebinding.is_local(call.authority, call.headers.items()):
        raise McpFailure(403, "host or origin is not local")


def check_sessions(call: BackendCall) -> None:
    """Raise McpFailure 400 for a session request in a revision without sessions."""
    if versions.is_modern(call.headers.get(versions.HEADER)):
        raise McpFailure(400, "this protocol revision has neither sessions nor event streams of them")


def check_session_id(session_id: str | None) -> None:
    """Raise McpFailure 400 for a malformed session id: it must consist of visible ASCII characters."""
    if session_id is not None and (len(session_id) > MAX_SESSION_ID or not VISIBLE.fullmatch(session_id)):
        raise McpFailure(400, "malformed session id")


def accepts(call: BackendCall, *kinds: str) -> bool:
    """Return True if the client accepts all of these media types, in one or several fields and in any case."""
    accept = call.headers.get("accept") or ""
    if all(kind in accept for kind in kinds):
        return True
    said = ",".join(value for name, value in call.headers.items() if name.lower() == "accept").lower()
    return all(kind in said for kind in kinds)


def check_get(call: BackendCall) -> None:
    """Raise McpFailure for a GET that does not request an event stream."""
    if not accepts(call, "text/event-stream"):
        raise McpFailure(406, "accept must include text/event-stream")
    check_version(call, None)


def read_post(call: BackendCall) -> RpcMessage:
    """Return the message of a POST; raises McpFailure in the order of the transport's checks."""
    if not accepts(call, "application/json", "text/event-stream"):
        raise McpFailure(406, "accept must include application/json and text/event-stream")
    if not (call.headers.get("content-type") or "").lower().startswith("application/json"):
        raise McpFailure(415, "content-type must be application/json")
    try:
        message = parse(call.body)
    except NotAMessage as error:
        raise unread(call, error) from None
    return message


def unread(call: BackendCall, error: NotAMessage) -> McpFailure:
    """Return the error for an invalid message, with the id of the message if it has a valid one."""
    version = call.headers.get(versions.HEADER)
    if error.raw_id is not None and error.method is not None and versions.is_modern(version):
        fault = modern.unknown_method(error.method)
        if fault is not None:
            return McpFailure(fault.status, fault.message, fault.code).about(error.raw_id)
    return McpFailure(400, str(error), error.code).about(error.raw_id)


def with_trace(call: BackendCall, message: RpcMessage) -> RpcMessage:
    """Return the message with the trace context of the header fields in `_meta` (SEP-414); existing members remain.

    Source: https://github.com/modelcontextprotocol/modelcontextprotocol/issues/414
    """
    trace = {name: value for name in TRACE if (value := call.headers.get(name)) is not None}
    if not trace or message.method is None:
        return message
    text = message.text
    if not message.params:
        text = with_members(text, (), {"params": {"_meta": trace}})
    elif b'"_meta"' in message.params:
        text = with_members(text, ("params", "_meta"), dict(trace))
    if text == message.text:
        text = with_members(text, ("params",), {"_meta": trace})
    return message if text == message.text else parse(text)


def check_post(call: BackendCall, message: RpcMessage, known: bool) -> None:
    """Raise McpFailure for contradictory or missing header fields. `known`: also for unknown methods."""
    version, fields = call.headers.get(versions.HEADER), call.headers.items()
    fault = modern.fault(message, version, fields, known)
    if fault is not None:
        raise McpFailure(fault.status, fault.message, fault.code)
    if version_mismatch(message, version):
        raise McpFailure(400, "initialize requests another protocol version than the header", HEADER_MISMATCH)
    contradiction = mismatch(message, fields)
    if contradiction is not None:
        raise McpFailure(400, contradiction, HEADER_MISMATCH)


def check_version(call: BackendCall, message: RpcMessage | None) -> None:
    """Raise McpFailure 400 for an unknown version in the protocol version header."""
    version = call.headers.get(versions.HEADER)
    if version is None or version in versions.KNOWN:
        return
    if not version.isprintable() or not version.isascii():
        raise McpFailure(400, f"{versions.HEADER} is not printable")
    data = None
    if message is None or message.method != INITIALIZE:
        data = {"supported": list(versions.KNOWN), "requested": version[:64]}
    raise McpFailure(400, f"unsupported MCP protocol version: {version[:64]}", UNSUPPORTED_VERSION, data)


def needs_session(message: RpcMessage) -> bool:
    """Return True if a message is only valid within a session."""
    return not (message.kind is RpcKind.REQUEST and message.method == INITIALIZE)
