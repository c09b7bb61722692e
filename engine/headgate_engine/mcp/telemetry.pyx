"""What one MCP request tells; see telemetry.pxd."""

import json

from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport Message

from headgate_engine.peek.rpc import NotAMessage, parse

# Method to what it is about. `templates` only in metrics and logs: for expressions a template is a resource.
KINDS = {
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
NAME_FIELDS = {"tool": "gen_ai.tool.name", "prompt": "gen_ai.prompt.name", "resource": "mcp.resource.uri"}
ARGUMENTS = frozenset(("tool", "prompt"))
MESSAGE = "mcp.error.message"
# Enough to find the lines of one session, too little to take it over.
SESSION_LETTERS = 16
MAX_TEXT = 256
# How an answer of one event begins, which most answers are.
ONE_EVENT = b"event: message\ndata: "
cdef dict _kinds = KINDS
cdef dict _name_fields = NAME_FIELDS
cdef bytes _one_event = ONE_EVENT


def logged_session_id(str session_id not None):
    """What logs tell of a session id."""
    return session_id[:SESSION_LETTERS]


cdef class RequestTelemetry:
    """One request with a method. `server`: the only target there is, None where it is one of several; `count` is called
    once, when the request has ended.
    """

    def __init__(self, call not None, Message message not None, str session_id, str server, count not None):
        self.method = message.method or ""
        self.kind = _kinds.get(self.method)
        self.server = server
        self.session_id = session_id
        self.message = message
        self.answer = b""
        self.call = call
        self.context = call.context
        self.count = count
        self._log("mcp.method.name", self.method)
        if session_id is not None:
            self._log("mcp.session.id", session_id[:SESSION_LETTERS])
        if self.kind is not None:
            self._log("mcp.resource.type", self.kind)
        if self.context is not None:
            self.context.dynamic = {**(self.context.dynamic or {}), "mcp": new_view(self)}
        if server is not None:
            self._record(server, message.name, self.kind)

    def addressed(self, str target not None, str name, str kind):
        """Tells whose the request is and what it is about, by the name that the target knows."""
        self._record(target, name, kind)

    cdef int _record(self, str target, str name, str kind) except -1:
        self.server, self.name, self.kind = target, name, kind or self.kind
        self._log_once("mcp.target", target)
        field = _name_fields.get(self.kind or "")
        if field is not None and name is not None:
            self._log_once(<str>field, name[:MAX_TEXT])
        return 0

    cdef int _log(self, str key, value) except -1:
        cdef RequestContext context = self.context
        if context is not None:
            if context.log_fields is None:
                context.log_fields = []
            context.log_fields.append((key, value))
        return 0

    cdef int _log_once(self, str key, str value) except -1:
        if self.logged is None:
            self.logged = []
        if (key, value) not in self.logged:
            self.logged.append((key, value))
            self._log(key, value)
        return 0

    def ended(self, int status, bytes answer not None):
        """Tells how it ended; only the first time counts. `status` 0: the client did not wait for it.

        `answer`: the body, or the last events of a stream, its response last.
        """
        cdef object count = self.count
        self.count = None
        if count is None:
            return
        self.answer = response_in(answer)
        error = error_in(self.answer)
        self.failed = error is not None or not 200 <= status < 300
        call, self.call = self.call, None
        count(call, self)
        if error is not None:
            self._log("mcp.error.code", error.get("code"))
            if self.context is not None and all([key != MESSAGE for key, _ in self.context.log_fields]):
                self._log(MESSAGE, str(error.get("message"))[:MAX_TEXT])
        # The context knows the view, and the view this: no ring that only the garbage collector finds.
        self.context = None


cdef ExpressionView new_view(RequestTelemetry telemetry):
    cdef ExpressionView view = ExpressionView.__new__(ExpressionView)
    view.telemetry = telemetry
    return view


cdef class ExpressionView:
    """`mcp` as expressions see it, made when they ask."""

    def __init__(self, RequestTelemetry telemetry not None):
        self.telemetry = telemetry

    def __contains__(self, field):
        cdef RequestTelemetry telemetry = self.telemetry
        if field == "sessionId":
            return telemetry.session_id is not None
        return field == "methodName" or (field == telemetry.kind and telemetry.name is not None)

    def __getitem__(self, field):
        cdef RequestTelemetry telemetry = self.telemetry
        if field == "methodName":
            return telemetry.method
        if field == "sessionId":
            return telemetry.session_id
        found = {"name": telemetry.name}
        if telemetry.server is not None:
            found["target"] = telemetry.server
        if telemetry.kind in ARGUMENTS:
            found["arguments"] = telemetry.message.decoded_params().get("arguments", {})
        if telemetry.answer:
            response = decoded(telemetry.answer)
            found |= {key: response[key] for key in ("result", "error") if key in response}
        return found


def response_in(bytes answer not None):
    """The last message of an answer: a body of JSON, or whole events."""
    if answer[:1] == b"{":
        return answer
    if answer.startswith(_one_event) and answer.count(b"\n") == 3:
        return answer[len(_one_event):len(answer) - 2]
    last = answer.rstrip(b"\r\n").replace(b"\r\n", b"\n").rpartition(b"\n\n")[2]
    lines = [line[5:].removeprefix(b" ") for line in last.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(lines)


def error_in(bytes text not None):
    """The error of a response; None when it is none."""
    if b'"error"' not in text:
        return None
    try:
        if not parse(text).is_error:
            return None
    except NotAMessage:
        return None
    error = decoded(text).get("error")
    return error if isinstance(error, dict) else None


def decoded(bytes text not None):
    """A message as objects, {} when it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
