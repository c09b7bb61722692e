# cython: auto_pickle=True
# Compiled expressions are sent to the workers as pickles.
"""Requests and responses as expressions see them.

headgate.expr.variables lists the names and where they have values.
"""

import os
import time
import urllib.parse

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport HEAD_CHUNKED, SPAN_DROPPED, SPAN_SENSITIVE, MessageHead
from headgate_engine.context.request cimport BODY_PREFIX, BODY_UNREAD, RequestContext
from headgate_engine.expr.cost cimport charge
from headgate_engine.expr.nodes cimport ABSENT, EvaluationFrame, ExpressionNode
from headgate_engine.expr.values cimport Duration, Redacted, Timestamp
from headgate_engine.plan.plans cimport Delegation, BackendPlan, ListenerPlan, RoutePlan

from libc.stdint cimport int64_t

from headgate_engine.context.redact import redacted
from headgate_engine.expr.answers import READERS as LLM_READERS
from headgate_engine.expr.nodes import FAILURES
from headgate_engine.expr.values import EvaluationError, NoSuchKey, no_overload

cdef enum Form:
    RAW = 1                # always a list of lines
    JOINED = 2             # always one string
    SPLIT = 4              # always a list, lines are split at commas
    HIDDEN = 8             # values of sensitive fields are redacted

# Fields that hold a URL, in whose query there may be credentials.
cdef frozenset URL_FIELDS = frozenset((b"location", b"content-location", b"referer"))

BACKEND_TYPES = {"llm": "ai", "mcp": "mcp", "http": "static", "a2a": "static"}


cdef class HeaderFields:
    """Header fields by name, in any case. The value of a field is a string for one line and a list for several lines.

    The methods join(), raw() and split() change the form of the values.
    """

    def __init__(self, MessageHead head not None, int form=0):
        self.head = head
        self.form = form

    def cel_size(self):
        """How many bytes the names and values have."""
        cdef Py_ssize_t found = 0
        cdef int i
        for i in range(self.head.count):
            found += self.head.spans[i].name_len + self.head.spans[i].value_len
        return found

    def _lines(self, str name):
        cdef bytes raw = name.lower().encode("utf-8", "replace")
        cdef int i = self.head.find(raw, len(raw), 0)
        found = []
        while i >= 0:
            if self.form & HIDDEN and self.head.spans[i].flags & SPAN_SENSITIVE:
                found.append("<redacted>")
            else:
                found.append(self.head._text(self.head.spans[i].value_off, self.head.spans[i].value_len))
            i = self.head.find(raw, len(raw), i + 1)
        if self.form & HIDDEN and raw in URL_FIELDS:
            return [redacted(text) for text in found]
        return found

    def _formed(self, list lines):
        if self.form & JOINED:
            return ",".join(lines)
        if self.form & SPLIT:
            return [part.strip() for line in lines for part in line.split(",")]
        if self.form & RAW or len(lines) > 1:
            return lines
        return lines[0]

    def cel_find(self, name):
        """Return the value of a field, or ABSENT."""
        if not isinstance(name, str):
            raise no_overload("a header name is a string")
        lines = self._lines(name)
        return self._formed(lines) if lines else ABSENT

    def cel_index(self, name):
        """Return the value of a field. Raises NoSuchKey if there is none."""
        found = self.cel_find(name)
        if found is ABSENT:
            raise NoSuchKey(f"no such key: {name}")
        return found

    def cel_contains(self, name):
        return isinstance(name, str) and bool(self._lines(name))

    def cel_items(self):
        return [(name, self._formed(self._lines(name))) for name in self._names()]

    def cel_json(self):
        return dict(self.cel_items())

    def cel_join(self, *separator):
        if separator:
            raise no_overload("join() of headers has no argument")
        return HeaderFields(self.head, self.form & HIDDEN | JOINED)

    def _names(self):
        cdef int i
        names = {}
        for i in range(self.head.count):
            if not self.head.spans[i].flags & SPAN_DROPPED:
                text = self.head._text(self.head.spans[i].name_off, self.head.spans[i].name_len)
                names[text.lower()] = None
        return list(names)

    def __len__(self):
        return len(self._names())

    def __eq__(self, other):
        return isinstance(other, HeaderFields) and self.cel_items() == other.cel_items()

    def formed(self, int form):
        """Return the same fields with values of another form. form: bits of Form."""
        return HeaderFields(self.head, self.form & HIDDEN | form if form != HIDDEN else self.form | HIDDEN)

    def cookie(self, name):
        """Return the value of the first cookie with that name (RFC 6265 section 4.2).

        Raises NoSuchKey if there is none.
        """
        for line in HeaderFields(self.head)._lines("cookie"):
            for part in line.split(";"):
                key, equals, value = part.strip().partition("=")
                if equals and key == name:
                    return value
        raise NoSuchKey(f"no such key: {name}")


def _view(value):
    if isinstance(value, HeaderFields):
        return value
    raise no_overload("headers are wanted")


class UriText(str):
    """A request target or URI: a string with methods for its query."""

    __slots__ = ()
    TYPE_NAME = "string"


def _query(value, name):
    if not isinstance(value, UriText):
        raise no_overload("query")
    found = [text for key, text in urllib.parse.parse_qsl(value.partition("?")[2], keep_blank_values=True)
             if key == name]
    if not found:
        raise NoSuchKey(f"no such key: {name}")
    return found


def _encoded(text):
    if not isinstance(text, str):
        raise no_overload("a string is wanted")
    return urllib.parse.quote(text, safe="-._~")


def _add_query(value, name, text):
    if not isinstance(value, UriText):
        raise no_overload("addQuery")
    return UriText(f"{value}{'&' if '?' in value else '?'}{_encoded(name)}={_encoded(text)}")


def _set_query(value, name, text):
    """Remove the parameters with that name and append the new one."""
    if not isinstance(value, UriText):
        raise no_overload("setQuery")
    path, _, query = value.partition("?")
    parts = [part for part in (query.split("&") if query else [])
             if urllib.parse.unquote_plus(part.partition("=")[0]) != name]
    parts.append(f"{_encoded(name)}={_encoded(text)}")
    return UriText(f"{path}?{'&'.join(parts)}")


FUNCTIONS = {
    ("raw", True): (lambda value: _view(value).formed(RAW), 0, 0),
    ("redacted", True): (lambda value: _view(value).formed(HIDDEN), 0, 0),
    ("cookie", True): (lambda value, name: _view(value).cookie(name), 1, 1),
    ("query", True): (_query, 1, 1),
    ("addQuery", True): (_add_query, 2, 2),
    ("setQuery", True): (_set_query, 2, 2),
}


def split_headers(value):
    """Return split() of a header view. Strings have the split() of the strings extension instead."""
    return _view(value).formed(SPLIT)


# -- one reader per variable -----------------------------------------------------------------------------------------------
cdef class HeaderField(ExpressionNode):
    """`request.headers["name"]` with a name known at compile time. response: read the response headers instead."""

    cdef bytes name
    cdef str shown
    cdef bint response

    def __init__(self, str name, bint response=False):
        self.name = name.lower().encode("utf-8", "replace")
        self.shown = name.lower()
        self.response = response

    cdef object eval(self, EvaluationFrame frame):
        found = self.probe(frame)
        if found is ABSENT:
            frame.raise_absent()
        return found

    cdef object probe(self, EvaluationFrame frame):
        cdef MessageHead head = None
        cdef int i = -1
        if frame.ctx is not None:
            head = frame.ctx.response if self.response else frame.ctx.head
        if head is not None:
            i = head.find(self.name, len(self.name), 0)
        if i < 0:
            frame.missing = self.shown
            return ABSENT
        if head.find(self.name, len(self.name), i + 1) >= 0:
            lines = HeaderFields(head)._lines(self.name.decode())
            for line in lines:
                charge(frame, line)
            return lines
        found = head._text(head.spans[i].value_off, head.spans[i].value_len)
        charge(frame, found)
        return found


cdef class VariableReader(ExpressionNode):
    """A variable: `read(ctx)` returns its value, or ABSENT if it has none."""

    cdef readonly str name
    cdef str field
    cdef object read

    def __init__(self, str name, read):
        self.name = name
        self.field = name.rpartition(".")[2]
        self.read = read

    cdef object eval(self, EvaluationFrame frame):
        found = self.probe(frame)
        if found is ABSENT:
            frame.raise_absent()
        return found

    cdef object probe(self, EvaluationFrame frame):
        if frame.ctx is None:
            frame.missing = self.name
            return ABSENT
        try:
            found = self.read(frame.ctx)
        except FAILURES as error:
            raise EvaluationError(f"{self.name}: {error}") from None
        if found is ABSENT:
            frame.missing = self.field
        elif isinstance(found, str):
            charge(frame, found)         # these are decoded for each read
        return found


cdef class NullableReader(VariableReader):
    """A field of a variable that is null while the variable has a value and the field has none."""

    cdef object probe(self, EvaluationFrame frame):
        found = VariableReader.probe(self, frame)
        return None if found is ABSENT and frame.ctx is not None and has_variable(frame.ctx, self.name) else found


cdef bint has_variable(RequestContext ctx, str name) except -1:
    """Return whether the variable of a field has a value. Most have one in every request."""
    if name.startswith("llm."):
        return ctx.llm is not None
    if name.startswith("response."):
        return ctx.response is not None or ctx.status > 0
    if name.startswith("mcp."):
        return ctx.dynamic is not None and ctx.dynamic.get("mcp") is not None
    return True


cdef class Gathered(ExpressionNode):
    """A variable as a whole: a map of its fields that have a value, null if none has.

    With an empty map, `basicAuth != null` would hold for requests without credentials.
    """

    cdef dict fields

    def __init__(self, dict fields):
        self.fields = fields

    cdef object eval(self, EvaluationFrame frame):
        found = {}
        for name, node in self.fields.items():
            frame.spend()
            try:
                value = (<ExpressionNode>node).probe(frame)
            except EvaluationError:
                continue
            if value is not ABSENT:
                found[name] = value
        return found or None


cdef class RequestPath(ExpressionNode):
    """`request.path`, the field that expressions read most."""

    cdef object eval(self, EvaluationFrame frame):
        cdef MessageHead head
        if frame.ctx is None:
            raise NoSuchKey("no such key: path")
        head = frame.ctx.head
        return head._text(head.target_off, head.path_len)


cdef class RequestMethod(ExpressionNode):
    """`request.method`."""

    cdef object eval(self, EvaluationFrame frame):
        cdef MessageHead head
        if frame.ctx is None:
            raise NoSuchKey("no such key: method")
        head = frame.ctx.head
        return head._text(head.method_off, head.method_len)


cdef class ClaimsVariable(ExpressionNode):
    """`jwt`: the verified claims, null until a token has been verified."""

    cdef object eval(self, EvaluationFrame frame):
        if frame.ctx is None:
            return None
        return frame.ctx.jwt


def _scheme(RequestContext ctx):
    return "https" if ctx.secure else "http"


def _host(RequestContext ctx):
    text = ctx.head.authority
    if text.startswith("["):
        return text[:text.find("]") + 1]
    return text.partition(":")[0]


def _version(RequestContext ctx):
    return "HTTP/2.0" if ctx.head.minor_version == 20 else f"HTTP/1.{ctx.head.minor_version}"


def _uri(RequestContext ctx):
    return UriText(f"{_scheme(ctx)}://{ctx.head.authority}{ctx.head.target}")


def _target(RequestContext ctx):
    return UriText(ctx.head.target)


def _request_headers(RequestContext ctx):
    return HeaderFields(ctx.head)


def _request_body(RequestContext ctx):
    if ctx.body_state == BODY_PREFIX:
        raise EvaluationError("the request body is too large")
    return _body_prefix(ctx)


def _body_prefix(RequestContext ctx):
    if ctx.body_state == BODY_UNREAD:
        if ctx.head.content_length > 0 or ctx.head.flags & HEAD_CHUNKED:
            raise EvaluationError("the request body was not read")
        return b""
    return ctx.body or b""


# Wall clock minus monotonic clock. It changes only if the clocks drift apart by a second, so that a timestamp of a
# request has the same value each time it is read.
cdef int64_t _offset_ns = 0
cdef int64_t STEADY_NS = 1_000_000_000


cdef object _moment(int64_t ns):
    global _offset_ns
    cdef int64_t now = <int64_t>time.time_ns() - monotonic_ns()
    if not -STEADY_NS < now - _offset_ns < STEADY_NS:
        _offset_ns = now
    return Timestamp(ns + _offset_ns)


def _start_time(RequestContext ctx):
    return _moment(ctx.started_ns)


def _end_time(RequestContext ctx):
    if not ctx.finished_ns:
        return ABSENT
    return _moment(ctx.finished_ns)


def _code(RequestContext ctx):
    if ctx.response is not None:
        return ctx.response.status
    return ctx.status if ctx.status else ABSENT


def _grpc_status(RequestContext ctx):
    text = None if ctx.response is None else ctx.response.get("grpc-status")
    # gRPC status codes are 0 to 16; a value with more than three digits is invalid.
    if text is None or not text.isascii() or not text.isdigit() or len(text) > 3:
        return ABSENT
    return int(text)


def _response_headers(RequestContext ctx):
    if ctx.response is None:
        return ABSENT
    return HeaderFields(ctx.response)


def _response_body(RequestContext ctx):
    if ctx.response_cut:
        raise EvaluationError("the response body is too large")
    return _response_prefix(ctx)


def _response_prefix(RequestContext ctx):
    if ctx.response_body is None:
        if ctx.response is None:
            return ABSENT
        raise EvaluationError("the response body was not read, or is too large")
    return ctx.response_body


def _nothing(RequestContext ctx):
    """Read what no request has here: workloads are not built."""
    return ABSENT


def _gateway(RequestContext ctx):
    plan = <ListenerPlan>ctx.listener
    return ABSENT if plan is None else {"name": plan.gateway, "namespace": plan.gateway_namespace}


def _bind(RequestContext ctx):
    port = None if ctx.connection is None else ctx.connection.local[1]
    return f"bind/{port}" if port else ABSENT


def _listener(RequestContext ctx):
    plan = <ListenerPlan>ctx.listener
    return ABSENT if plan is None else {"name": plan.name}


def _route(RequestContext ctx):
    plan = <RoutePlan>ctx.route
    if plan is None:
        return ABSENT
    kind = "HTTPRoute" if ctx.protocol != "tcp" else "TLSRoute" if ctx.secure else "TCPRoute"
    found = {"name": plan.name, "namespace": plan.namespace, "kind": kind}
    if plan.rule_name:
        found["rule"] = plan.rule_name
    if ctx.delegation is not None:
        found["parents"] = (<Delegation>ctx.delegation).names()
    return found


def _span(int64_t start, int64_t stop):
    return Duration(stop - start) if start and stop else ABSENT


def _upstream_time(RequestContext ctx):
    return _span(ctx.upstream_started_ns, ctx.head_received_ns)


def _request_time(RequestContext ctx):
    return _span(ctx.started_ns, ctx.upstream_started_ns)


def _response_time(RequestContext ctx):
    return _span(ctx.head_received_ns, ctx.finished_ns)


def _address(RequestContext ctx):
    return (None if ctx.connection is None else ctx.connection.peer_host) or ABSENT


def _port(RequestContext ctx):
    return ABSENT if ctx.connection is None else ctx.connection.peer_port


def _raw_address(RequestContext ctx):
    return getattr(ctx.connection, "raw_host", None) or _address(ctx)


def _raw_port(RequestContext ctx):
    return getattr(ctx.connection, "raw_port", None) or _port(ctx)


def _connect_headers(RequestContext ctx):
    head = getattr(ctx.connection, "connect_head", None)
    return ABSENT if head is None else HeaderFields(<MessageHead?>head)


def _local_address(RequestContext ctx):
    return (None if ctx.connection is None else ctx.connection.local[0]) or ABSENT


def _local_port(RequestContext ctx):
    return (None if ctx.connection is None else ctx.connection.local[1]) or ABSENT


def _server_name(RequestContext ctx):
    return (None if ctx.connection is None else ctx.connection.server_name) or ABSENT


def _of_client(attribute):
    """Return a reader of what the client's certificate says (tls.identity.CertificateIdentity)."""
    def read(RequestContext ctx):
        identity = getattr(ctx.connection, "client_identity", None)
        value = None if identity is None else getattr(identity, attribute)
        # An empty subject (RFC 5280 section 4.1.2.6) or an empty list of names says nothing.
        return ABSENT if not value else list(value) if type(value) is tuple else value
    return read


def _workload(RequestContext ctx):
    identity = getattr(ctx.connection, "client_identity", None)
    found = None if identity is None else identity.workload
    return ABSENT if found is None else dict(zip(("trustDomain", "namespace", "serviceAccount"), found))


def _backend_name(RequestContext ctx):
    return ABSENT if ctx.backend is None else (<BackendPlan>ctx.backend).name


def _backend_type(RequestContext ctx):
    if ctx.backend is None:
        return ABSENT
    if (<BackendPlan>ctx.backend).name.startswith("service/"):
        return "service"
    if (<BackendPlan>ctx.backend).name == "dynamic":
        return "dynamic"
    return BACKEND_TYPES.get((<BackendPlan>ctx.backend).protocol, "unknown")


def _backend_protocol(RequestContext ctx):
    return ABSENT if ctx.backend is None else (<BackendPlan>ctx.backend).protocol


def _raw_token(RequestContext ctx):
    return ABSENT if ctx.jwt_token is None else Redacted(ctx.jwt_token)


def _api_key(RequestContext ctx):
    return ctx.api_key


def _api_key_text(RequestContext ctx):
    return ABSENT if ctx.api_key_text is None else Redacted(ctx.api_key_text)


def _user(RequestContext ctx):
    return ABSENT if ctx.basic_user is None else ctx.basic_user


def _metadata(RequestContext ctx):
    return ctx.metadata


def dynamic(name):
    """Return a reader of the attributes that an external service has returned."""
    def read(RequestContext ctx):
        return None if ctx.dynamic is None else ctx.dynamic.get(name)
    return read


def field_of_variable(variable, field):
    """Return a reader of one field of a variable that a policy or backend sets as a whole (`ctx.dynamic[variable]`)."""
    def read(RequestContext ctx):
        whole = None if ctx.dynamic is None else ctx.dynamic.get(variable)
        if whole is None or field not in whole:
            return ABSENT
        return whole[field]
    return read


def _setting(*names):
    value = next((os.environ[name] for name in names if name in os.environ), "")
    return lambda ctx: value or ABSENT


# Dotted name to reader. Names that are neither here nor in headgate.expr.variables are compile errors.
READERS = {
    "request.scheme": _scheme,
    "request.host": _host,
    "request.version": _version,
    "request.uri": _uri,
    "request.pathAndQuery": _target,
    "request.headers": _request_headers,
    "request.body": _request_body,
    "request.bodyPrefix": _body_prefix,
    "request.startTime": _start_time,
    "request.endTime": _end_time,
    "response.code": _code,
    "response.grpcStatus": _grpc_status,
    "response.headers": _response_headers,
    "response.body": _response_body,
    "response.bodyPrefix": _response_prefix,
    "proxy.bind": _bind,
    "proxy.gateway": _gateway,
    "proxy.listener": _listener,
    "proxy.route": _route,
    "proxy.requestProcessingDuration": _request_time,
    "proxy.upstreamDuration": _upstream_time,
    "proxy.responseProcessingDuration": _response_time,
    "env.podName": _setting("POD_NAME", "HOSTNAME"),
    "env.namespace": _setting("POD_NAMESPACE", "NAMESPACE"),
    "env.gateway": _setting("GATEWAY"),
    "source.address": _address,
    "source.port": _port,
    "source.rawAddress": _raw_address,
    "source.rawPort": _raw_port,
    "source.spiffeId": _of_client("spiffe_id"),
    "source.subjectAltNames": _of_client("subject_alt_names"),
    "source.issuer": _of_client("issuer"),
    "source.subject": _of_client("subject"),
    "source.subjectCn": _of_client("subject_cn"),
    "source.certificate": _of_client("certificate"),
    "source.identity": _workload,
    "source.unverifiedWorkload": _nothing,
    "source.connectHeaders": _connect_headers,
    "destination.address": _local_address,
    "destination.port": _local_port,
    "destination.hostname": _server_name,
    "jwt.rawToken": _raw_token,
    "apiKey": _api_key,
    "apiKey.key": _api_key_text,
    "basicAuth.username": _user,
    "backend.name": _backend_name,
    "backend.type": _backend_type,
    "backend.protocol": _backend_protocol,
    "metadata": _metadata,
    "extauthz": dynamic("extauthz"),
    "extproc": dynamic("extproc"),
    "mcpGuardrails": dynamic("mcpGuardrails"),
    "llmRequest": dynamic("llmRequest"),
    **LLM_READERS,
    **{f"mcp.{field}": field_of_variable("mcp", field) for field in (
        "methodName", "sessionId", "tool", "prompt", "resource", "task")},
}

# What depends on the client's connection, and on the way that its request has taken through this worker.
ORIGIN = ("request.version", "request.startTime", *(
    name for name in READERS if name.startswith(("source.", "destination.", "backend.")) or name in (
        "proxy.bind", "proxy.gateway", "proxy.listener", "proxy.route")))


def _at_the_origin(str name, read):
    """Return a reader that has the value at the worker which relays the request, if one does."""
    def read_there(RequestContext ctx):
        return read(ctx) if ctx.origin is None else ctx.origin.get(name, ABSENT)
    return read_there


READERS.update({name: _at_the_origin(name, READERS[name]) for name in ORIGIN})


def origin_of(RequestContext ctx not None):
    """Return what a worker to which the request is relayed has to know for expressions: its `origin`."""
    found = {name: READERS[name](ctx) for name in ORIGIN}
    return {name: value for name, value in found.items() if value is not ABSENT}
