"""Lines of the access log of requests that are given in parts."""

import time

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, TokenUsage, new_context
from headgate_engine.context.trace_context cimport TraceContext
from headgate_engine.log.access cimport AccessLogFormat
from headgate_engine.log.fields cimport LogFields
from headgate_engine.log.model_meter cimport ModelMeter
from headgate_engine.log.records cimport RecordFormat, RecordSink
from headgate_engine.log.spans cimport Sampling
from headgate_engine.log.text cimport append_text_value
from headgate_engine.plan.plans cimport ListenerPlan, RoutePlan
from headgate_engine.wire.buffer cimport ByteBuffer

from headgate_engine.route.table import RouteTable

cdef enum:
    MAX_BUFFER = 65536
    MAX_ROUNDS = 100000000


def text_value(bytes value not None):
    cdef ByteBuffer out = ByteBuffer()
    append_text_value(out, value, len(value))
    return out.take()


def access_line(AccessLogFormat form not None, int64_t wall_ns, request):
    cdef ByteBuffer out = ByteBuffer()
    form.write_line(out, context_of(request), wall_ns)
    return out.take()


def nanoseconds_per_line(AccessLogFormat form not None, request, *, Py_ssize_t rounds=10000):
    cdef ByteBuffer out = ByteBuffer()
    cdef RequestContext ctx = context_of(request)
    cdef Py_ssize_t i
    if not 0 < rounds <= MAX_ROUNDS:
        raise ValueError(f"{rounds} rounds are not in 1..10**8")
    began = time.perf_counter_ns()
    for i in range(rounds):
        form.write_line(out, ctx, 1767225600000000000 + i * 1000)
        if out.length > MAX_BUFFER:
            out.clear()
    return (time.perf_counter_ns() - began) / rounds


class _Peer:
    def __init__(self, peer, name=None, server_name=None):
        self.peer = peer
        self.client_identity = None if name is None else self
        self.name = name
        self.server_name = server_name


cdef TraceContext trace_of(dict parts):
    cdef TraceContext found
    cdef bytes trace, span
    if "trace.id" not in parts:
        return None
    found = TraceContext.__new__(TraceContext)
    trace, span = parts.pop("trace.id").encode(), parts.pop("span.id").encode()
    memcpy(found.trace_id, <const char*>trace, 32)
    memcpy(found.span_id, <const char*>span, 16)
    return found


cdef RequestContext context_of(request):
    """Return a context from parts by their log keys. Raises KeyError for an unknown key."""
    cdef RequestContext ctx = new_context()
    cdef MessageHead head = MessageHead()
    cdef bytes method, host, target
    parts = dict(request)
    method, host, target = (parts.pop(key, default) for key, default in
                            (("http.method", b"GET"), ("http.host", b""), ("http.path", b"/")))
    head.method_off = head._put(method, len(method))
    head.method_len = <unsigned int>len(method)
    ctx.host_off = head._put(host, len(host))
    ctx.host_len = <unsigned int>len(host)
    ctx.target_off = head._put(target, len(target))
    ctx.target_len = <unsigned int>len(target)
    head.minor_version = parts.pop("http.version", 1)
    ctx.head = head
    ctx.secure = "tls.sni" in parts or "src.identity" in parts
    ctx.connection = _Peer(parts.pop("src.addr", "unix"), parts.pop("src.identity", None), parts.pop("tls.sni", None))
    place(ctx, parts)
    ctx.status = parts.pop("http.status", 0)
    ctx.protocol = parts.pop("protocol", None)
    ctx.provider = parts.pop("gen_ai.provider.name", None)
    ctx.requested_model = parts.pop("gen_ai.request.model", None)
    ctx.usage = TokenUsage(*(parts.pop(f"gen_ai.usage.{kind}", -1) for kind in (
        "input_tokens", "output_tokens", "cache_read.input_tokens", "reasoning_tokens")))
    ctx.request_id = parts.pop("request.id", None)
    ctx.request_bytes = parts.pop("bytes.received", 0)
    ctx.response_bytes = parts.pop("bytes.sent", 0)
    if "user_agent.original" in parts:
        head.add("user-agent", parts.pop("user_agent.original"))
    ctx.trace_context = trace_of(parts)
    ctx.attempts = parts.pop("retry.attempt", 0) + 1
    ctx.error = parts.pop("error", None)
    ctx.reason = parts.pop("reason", None)
    ctx.finished_ns = parts.pop("duration", 0)
    if "upstream.duration" in parts:
        ctx.upstream_started_ns = 1
        ctx.head_received_ns = 1 + parts.pop("upstream.duration")
    ctx.log_fields = parts.pop("fields", None)
    if parts:
        raise KeyError(f"no such part of a request: {', '.join(parts)}")
    return ctx


cdef int place(RequestContext ctx, dict parts) except -1:
    """Take listener, route and endpoint out of the parts."""
    gateway, listener = parts.pop("gateway", None), parts.pop("listener", "")
    if isinstance(gateway, ListenerPlan):
        ctx.listener = gateway
    elif gateway is not None:
        ctx.listener = ListenerPlan(listener, gateway[1], gateway[0], RouteTable(()))
    route, rule = parts.pop("route", None), parts.pop("route_rule", "")
    if isinstance(route, RoutePlan):
        ctx.route = route
    elif route is not None:
        ctx.route = RoutePlan(route[1], route[0], rule, (), ())
    ctx.endpoint = parts.pop("endpoint", None)
    return 0


def is_logged(LogFields fields not None, RequestContext ctx not None):
    return bool(fields.wanted(ctx))


def added_fields(LogFields fields not None, RequestContext ctx not None):
    if fields.added is None:
        raise TypeError("the fields were not made")
    return fields.values(ctx)


def is_sampled(Sampling sampling not None, RequestContext ctx not None):
    return bool(sampling.chooses(ctx))


def record_of(RecordFormat form not None, int64_t now_ns, RequestContext ctx not None):
    cdef ByteBuffer out = ByteBuffer()
    if form.line is None:
        raise TypeError("the format was not made")
    form.write(out, ctx, now_ns)
    return out.take()


def add_record(RecordSink sink not None, RequestContext ctx not None, RecordFormat form not None):
    if sink.waiting is None or form.line is None:
        raise TypeError("sink or format was not made")
    sink.put(ctx, form)


def waiting_bytes(RecordSink sink not None):
    return 0 if sink.waiting is None else sink.waiting.length


def count_model_call(ModelMeter meter not None, int64_t duration_ns, str error not None=""):
    if meter.segment is None:
        raise TypeError("the meter was not made")
    meter.duration_of(error).observe_scaled(duration_ns)
