"""What one MCP request tells: log fields, the series it counts in, and `mcp.*` of expressions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from headgate.backend.contract import Call
from headgate.dialect.mcp.jsonrpc import Message, NotAMessage, parse

# Method to what it is about. `templates` only in metrics and logs: for expressions a template is a resource.
KINDS: Final = {
    "tools/list": "tool",
    "tools/call": "tool",
    "prompts/list": "prompt",
    "prompts/get": "prompt",
    "resources/list": "resource",
    "resources/templates/list": "templates",
    "resources/read": "resource",
    "resources/subscribe": "resource",
    "resources/unsubscribe": "resource",
    "tasks/get": "task",
    "tasks/update": "task",
    "tasks/cancel": "task",
    "tasks/result": "task",
}
NAME_FIELDS: Final = {"tool": "gen_ai.tool.name", "prompt": "gen_ai.prompt.name", "resource": "mcp.resource.uri"}
ARGUMENTS: Final = frozenset(("tool", "prompt"))
MESSAGE: Final = "mcp.error.message"
# Enough to find the lines of one session, too little to take it over.
SESSION_LETTERS: Final = 16
MAX_TEXT: Final = 256
# How an answer of one event begins, which most answers are.
ONE_EVENT: Final = b"event: message\ndata: "


def logged_session_id(session_id: str) -> str:
    """Return what logs tell of a session id."""
    return session_id[:SESSION_LETTERS]


Count = Callable[[Call, "RequestTelemetry"], None]


class RequestTelemetry:
    """One request with a method. `server`: the only target there is, None where it is one of several; `count` is called
    once, when the request has ended.
    """

    def __init__(
        self, call: Call, message: Message, session_id: str | None, server: str | None, count: Count
    ) -> None:
        self.method = message.method or ""
        self.kind = KINDS.get(self.method)
        self.server = server
        self.name: str | None = None
        self.session_id = session_id
        self.failed = False
        self.message = message
        self.answer = b""
        self._call = call
        self._told: list[tuple[str, str]] = []
        self._count: Count | None = count
        call.add_log_field("mcp.method.name", self.method)
        if session_id is not None:
            call.add_log_field("mcp.session.id", logged_session_id(session_id))
        if self.kind is not None:
            call.add_log_field("mcp.resource.type", self.kind)
        context = call.context
        if context is not None:
            context.dynamic = {**(context.dynamic or {}), "mcp": ExpressionView(self)}
        if server is not None:
            self.addressed(server, message.name, self.kind)

    def addressed(self, target: str, name: str | None, kind: str | None) -> None:
        """Tell whose the request is and what it is about, by the name that the target knows."""
        self.server, self.name, self.kind = target, name, kind or self.kind
        self._tell("mcp.target", target)
        field = NAME_FIELDS.get(self.kind or "")
        if field is not None and name is not None:
            self._tell(field, name[:MAX_TEXT])

    def _tell(self, field: str, value: str) -> None:
        if (field, value) not in self._told:
            self._told.append((field, value))
            self._call.add_log_field(field, value)

    def ended(self, status: int, answer: bytes) -> None:
        """Tell how it ended; only the first time counts. `status` 0: the client did not wait for it.

        `answer`: the body, or the last events of a stream, its response last.
        """
        count, self._count = self._count, None
        if count is None:
            return
        self.answer = response_in(answer)
        error = error_in(self.answer)
        self.failed = error is not None or not 200 <= status < 300
        count(self._call, self)
        if error is None:
            return
        self._call.add_log_field("mcp.error.code", error.get("code"))
        context = self._call.context
        if context is not None and all(key != MESSAGE for key, _ in context.log_field_items):
            self._call.add_log_field(MESSAGE, str(error.get("message"))[:MAX_TEXT])


class ExpressionView:
    """`mcp` as expressions see it, made when they ask."""

    def __init__(self, telemetry: RequestTelemetry) -> None:
        self._telemetry = telemetry

    def __contains__(self, field: str) -> bool:
        telemetry = self._telemetry
        if field == "sessionId":
            return telemetry.session_id is not None
        return field == "methodName" or (field == telemetry.kind and telemetry.name is not None)

    def __getitem__(self, field: str) -> Any:
        telemetry = self._telemetry
        if field == "methodName":
            return telemetry.method
        if field == "sessionId":
            return telemetry.session_id
        found: dict[str, Any] = {"name": telemetry.name}
        if telemetry.server is not None:
            found["target"] = telemetry.server
        if telemetry.kind in ARGUMENTS:
            found["arguments"] = telemetry.message.decoded_params().get("arguments", {})
        if telemetry.answer:
            response = decoded(telemetry.answer)
            found |= {key: response[key] for key in ("result", "error") if key in response}
        return found


def log_without_message(call: Call, session_id: str | None, server: str | None) -> None:
    """Tell of a request that brings no message."""
    if server is not None:
        call.add_log_field("mcp.target", server)
    if session_id is not None:
        call.add_log_field("mcp.session.id", logged_session_id(session_id))


def telemetry_of(call: Call) -> RequestTelemetry | None:
    """Return the telemetry of a request that has one."""
    return getattr(call, "telemetry", None)


def addressed(call: Call, target: str, name: str | None, kind: str) -> None:
    """Tell of a request whose it is."""
    telemetry = telemetry_of(call)
    if telemetry is None:
        call.add_log_field("mcp.target", target)
    else:
        telemetry.addressed(target, name, kind or None)


def response_in(answer: bytes) -> bytes:
    """Return the last message of an answer: a body of JSON, or whole events."""
    if answer[:1] == b"{":
        return answer
    if answer.startswith(ONE_EVENT) and answer.count(b"\n") == 3:
        return answer[len(ONE_EVENT) : -2]
    last = answer.rstrip(b"\r\n").replace(b"\r\n", b"\n").rpartition(b"\n\n")[2]
    lines = [line[5:].removeprefix(b" ") for line in last.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines)


def error_in(text: bytes) -> dict[str, Any] | None:
    """Return the error of a response; None when it is none."""
    if b'"error"' not in text:
        return None
    try:
        if not parse(text).is_error:
            return None
    except NotAMessage:
        return None
    error = decoded(text).get("error")
    return error if isinstance(error, dict) else None


def decoded(text: bytes) -> dict[str, Any]:
    """Return a message as objects, {} when it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
