"""Telemetry of MCP requests; see telemetry.pxd."""

import json

from headgate_engine.context.request cimport RequestContext
from headgate_engine.peek.rpc cimport has_text, RpcMessage
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.segment cimport Segment

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
UNKNOWN = "unknown"
OTHER = "other"
# Names of tools, prompts and resources with a label value of their own. A template makes URIs without number.
MAX_NAMES = 500
MAX_NAME = 256
# Counters that are remembered: a reload may give routes other names.
MAX_COUNTERS = 4096
# How an answer of one event begins, which most answers are.
ONE_EVENT = b"event: message\ndata: "
cdef dict _kinds = KINDS
cdef dict _name_fields = NAME_FIELDS
cdef bytes _one_event = ONE_EVENT


def logged_session_id(str session_id not None):
    """The form of a session id in logs."""
    return session_id[:SESSION_LETTERS]


cdef class RequestCounts:
    """`methods`: those that have a label value. `series_key(method, kind, target, name, labels)` of a subclass gives the key
    of a series in the segment.
    """

    def __init__(self, Segment segment not None, frozenset methods not None):
        self.segment = segment
        self.methods = methods
        self.counters = {}
        self.names = {}

    def __call__(self, call not None, RequestTelemetry telemetry not None):
        self.add(call, telemetry)

    cdef int add(self, call, RequestTelemetry telemetry) except -1:
        cdef str method = telemetry.method if telemetry.method in self.methods else OTHER
        cdef str kind = telemetry.kind or UNKNOWN
        cdef str name = self._name_of(telemetry)
        cdef object place = call.place
        cdef tuple key = (method, kind, telemetry.server, name, place)
        cdef Counter found = self.counters.get(key)
        if found is None:
            text = self.series_key(method, kind, telemetry.server or UNKNOWN, name, call.route_labels())
            found = Counter(self.segment, text)
            if place is not None:
                if len(self.counters) >= MAX_COUNTERS:
                    self.counters.clear()
                self.counters[key] = found
        found.bump(1)
        return 0

    cdef str _name_of(self, RequestTelemetry telemetry):
        """Names invented by clients are no labels: failed requests have no name label, and there are at most MAX_NAMES
        names."""
        cdef str name = telemetry.name
        cdef tuple key
        if name is None or telemetry.failed or telemetry.kind == "task":
            return UNKNOWN
        if len(name) > MAX_NAME:
            return OTHER
        key = (telemetry.server, name)
        if key not in self.names:
            if len(self.names) >= MAX_NAMES:
                return OTHER
            self.names[key] = None
        return name


cdef class RequestTelemetry:
    """One request with a method. `server`: the single target, None with several. `count` is called once, at the end of
    the request.
    """

    def __init__(self, call not None, RpcMessage message not None, str session_id, str server, count not None):
        self.server = server
        self.session_id = session_id
        self.message = message
        self.call = call
        self.count = count
        self._begin(call.context)

    cdef int _begin(self, RequestContext context) except -1:
        self.method = self.message.method or ""
        self.kind = _kinds.get(self.method)
        self.answer = b""
        self.context = context
        self._log("mcp.method.name", self.method)
        if self.session_id is not None:
            self._log("mcp.session.id", self.session_id[:SESSION_LETTERS])
        if self.kind is not None:
            self._log("mcp.resource.type", self.kind)
        if context is not None:
            context.dynamic = {} if context.dynamic is None else dict(context.dynamic)
            context.dynamic["mcp"] = new_view(self)
        if self.server is not None:
            self._record(self.server, self.message.name, self.kind)
        return 0

    def addressed(self, str target not None, str name, str kind):
        """Sets the target of the request and its subject, by the name that the target knows."""
        self._record(target, name, kind)

    cdef int _record(self, str target, str name, str kind) except -1:
        self.server, self.name, self.kind = target, name, kind or self.kind
        self._log_once("mcp.target", target)
        field = None if self.kind is None else _name_fields.get(self.kind)
        if field is not None and name is not None:
            self._log_once(<str>field, name[:MAX_TEXT] if len(name) > MAX_TEXT else name)
        return 0

    cdef int _log(self, str key, value) except -1:
        cdef RequestContext context = self.context
        if context is not None:
            if context.log_fields is None:
                context.log_fields = []
            context.log_fields.append((key, value))
        return 0

    cdef int _log_once(self, str key, str value) except -1:
        cdef tuple one
        if self.logged is None:
            self.logged = []
        for one in self.logged:
            if <str>one[0] == key and <str>one[1] == value:
                return 0
        self.logged.append((key, value))
        return self._log(key, value)

    def ended(self, int status, bytes answer not None):
        """Sets the outcome; only the first call counts. `status` 0: the client has not waited for the answer.

        `answer`: the body, or the last events of a stream, its response last.
        """
        if self.count is not None:
            self.end(status, response_in(answer), True)

    cdef int end(self, int status, bytes answer, bint maybe_error) except -1:
        cdef object count = self.count
        self.count = None
        if count is None:
            return 0
        self.answer = answer
        error = error_in(answer) if maybe_error else None
        self.failed = error is not None or not 200 <= status < 300
        call, self.call = self.call, None
        if isinstance(count, RequestCounts):
            (<RequestCounts>count).add(call, self)
        else:
            count(call, self)
        if error is not None:
            self._log("mcp.error.code", error.get("code"))
            if self.context is not None and all([key != MESSAGE for key, _ in self.context.log_fields]):
                self._log(MESSAGE, str(error.get("message"))[:MAX_TEXT])
        # The context knows the view, and the view this: no ring that only the garbage collector finds.
        self.context = None
        return 0


cdef RequestTelemetry new_telemetry(call, RequestContext context, RpcMessage message, str session_id, str server, count):
    cdef RequestTelemetry made = RequestTelemetry.__new__(RequestTelemetry)
    made.server = server
    made.session_id = session_id
    made.message = message
    made.call = call
    made.count = count
    made._begin(context)
    return made


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
    if not has_text(text, b'"error"', 7):
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
