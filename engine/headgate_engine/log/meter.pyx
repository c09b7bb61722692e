"""Metrics of requests and connections, in the families of headgate.telemetry.families."""

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.expr.program cimport Program
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.segment cimport Segment

from headgate_engine.expr.values import EvaluationError
from headgate_engine.log.fields import shown
from headgate_engine.shared.histogram import SECONDS as _SECONDS
from headgate_engine.shared.segment import SegmentFull

# Methods with a label value of their own; what else a client makes up is counted as one.
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "other")
cdef list METHOD_BYTES = [name.encode() for name in METHODS]

REQUEST_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
# Longest value of a configured label, in characters.
MAX_LABEL = 256
OVERFLOW = 'overflow="true"'


def counter(Segment segment, bytes family, bytes labels):
    """The counter of that series; once the segment is full, the one where everything without a place is counted."""
    try:
        return Counter(segment, family + b"\0" + labels)
    except SegmentFull:
        return Counter.overflow(segment)


def histogram(Segment segment, bytes family, bytes labels, bounds, scale):
    """The histogram of that series; once the segment is full, the one of all that have these bounds and no place."""
    try:
        return Histogram(segment, family + b"\0" + labels, bounds, scale)
    except SegmentFull:
        return Histogram.overflow(segment, bounds, scale)


cdef class RequestMeter:
    def __init__(self, Segment segment, str labels):
        text = labels.encode("utf-8", "replace")
        self.requests = Counter(segment, b"gw_requests_total\0" + text)
        self.response_bytes = counter(segment, b"gw_response_bytes_total", text)
        self.retries = None
        self.duration = histogram(segment, b"gw_request_duration_seconds", text, REQUEST_SECONDS, _SECONDS)


def overflow_meter(Segment segment):
    """What requests are counted with when the segment was full before the first of them."""
    cdef RequestMeter meter = RequestMeter.__new__(RequestMeter)
    meter.requests = meter.response_bytes = Counter.overflow(segment)
    meter.duration = Histogram.overflow(segment, REQUEST_SECONDS, _SECONDS)
    return meter


cdef class CacheEntry:
    pass


cdef class BindMeter:
    def __init__(self, Segment segment, str labels):
        text = labels.encode()
        self.connections = counter(segment, b"gw_downstream_connections_total", text)
        self.refused = counter(segment, b"gw_downstream_refused_total", text)
        self.received = counter(segment, b"gw_downstream_received_bytes_total", text)
        self.sent = counter(segment, b"gw_downstream_sent_bytes_total", text)


cdef inline uint64_t _mix(uint64_t h, uint64_t v) noexcept nogil:
    return (h ^ v) * <uint64_t>1099511628211


cdef int method_index(MessageHead head) noexcept:
    cdef int i
    cdef bytes name
    for i in range(9):
        name = <bytes>PyList_GET_ITEM(METHOD_BYTES, i)
        if <Py_ssize_t>head.method_len == len(name) and memcmp(
                head.data + head.method_off, <char*>name, len(name)) == 0:
            return i
    return 9


def label(name, value):
    """`name="value"` with the value escaped as the exposition format wants."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{text}"'


def label_value(Program program, RequestContext ctx):
    """The text of a configured label; `unknown` when the expression fails or has no value."""
    try:
        text = shown(program.evaluate(ctx))
    except EvaluationError:
        return "unknown"
    return "unknown" if text is None else str(text)[:MAX_LABEL]


def route_labels(RequestContext ctx, BindPlan bind):
    """Where a request was taken to, and what the configuration adds."""
    cdef ListenerPlan listener = <ListenerPlan>ctx.listener
    cdef RoutePlan route = <RoutePlan>ctx.route
    found = ",".join((
        label("bind", bind.key),
        label("gateway", "unknown" if listener is None else f"{listener.gateway_namespace}/{listener.gateway}"),
        label("listener", "unknown" if listener is None else listener.name),
        label("route", "unknown" if route is None else f"{route.namespace}/{route.name}"),
        label("route_rule", "unknown" if route is None or not route.rule_name else route.rule_name),
    ))
    for name, program in bind.metric_labels or ():
        found += "," + label(name, label_value(<Program>program, ctx))
    return found


cdef class RequestMeters:
    def __init__(self, Segment segment):
        self.segment = segment
        self.cache = [None] * CACHE_SIZE
        self.meters = {}
        self.binds = {}
        self.tokens = {}

    cdef int count(self, RequestContext ctx, BindPlan bind) except -1:
        cdef RequestMeter meter
        cdef BindMeter ports
        if self.segment is None:
            return 0
        meter = self._find(ctx, bind)
        meter.requests.bump(1)
        meter.response_bytes.bump(<int64_t>ctx.response_bytes)
        meter.duration.observe_scaled(ctx.finished_ns - ctx.started_ns)
        ports = self.bind_meter(bind)
        ports.received.bump(<int64_t>ctx.request_bytes)
        ports.sent.bump(<int64_t>ctx.response_bytes)
        if ctx.attempts > 1:
            self._retries(meter, ctx, bind)
        if ctx.usage is not None:
            self._count_tokens(ctx)
        return 0

    cdef RequestMeter _find(self, RequestContext ctx, BindPlan bind):
        cdef int method = method_index(ctx.head)
        cdef uint64_t h = 14695981039346656037U
        cdef CacheEntry entry
        if bind.metric_labels is not None:
            # Values of expressions may be different for each request: found by their text.
            return self._meter(self._labels(ctx, bind, method))
        h = _mix(h, <uint64_t><size_t><void*>ctx.route >> 4)
        h = _mix(h, <uint64_t><size_t><void*>ctx.backend >> 4)
        h = _mix(h, <uint64_t><size_t><void*>ctx.listener >> 4)
        h = _mix(h, <uint64_t><size_t><void*>ctx.reason >> 4)
        h = _mix(h, <uint64_t>(ctx.status * 16 + method))
        h ^= h >> 29
        found = self.cache[h & (CACHE_SIZE - 1)]
        if found is not None:
            entry = <CacheEntry>found
            if entry.route is ctx.route and entry.backend is ctx.backend and entry.listener is ctx.listener \
                    and entry.reason is ctx.reason and entry.status == ctx.status and entry.method == method \
                    and entry.bind is bind:
                return entry.meter
        entry = CacheEntry()
        entry.bind = bind
        entry.route = ctx.route
        entry.backend = ctx.backend
        entry.listener = ctx.listener
        entry.reason = ctx.reason
        entry.status = ctx.status
        entry.method = method
        entry.meter = self._meter(self._labels(ctx, bind, method))
        self.cache[h & (CACHE_SIZE - 1)] = entry
        return entry.meter

    def _labels(self, RequestContext ctx, BindPlan bind, int method):
        cdef BackendPlan backend = <BackendPlan>ctx.backend
        return ",".join((
            label("backend", "unknown" if backend is None else backend.name),
            label("protocol", ctx.protocol or "http"),
            label("method", METHODS[method]),
            label("status", ctx.status or "unknown"),
            label("reason", ctx.reason or "Upstream"),
            route_labels(ctx, bind),
        ))

    def _meter(self, str labels):
        meter = self.meters.get(labels)
        if meter is None:
            try:
                if OVERFLOW not in self.meters:
                    # Made while there is still room: what finds none later is counted together, under this label.
                    self.meters[OVERFLOW] = RequestMeter(self.segment, OVERFLOW)
                meter = RequestMeter(self.segment, labels)
            except SegmentFull:
                meter = self.meters.get(OVERFLOW)
                if meter is None:
                    meter = self.meters[OVERFLOW] = overflow_meter(self.segment)
            self.meters[labels] = meter
        return meter

    def _retries(self, RequestMeter meter, RequestContext ctx, BindPlan bind):
        if meter.retries is None:
            labels = self._labels(ctx, bind, method_index(ctx.head))
            meter.retries = counter(self.segment, b"gw_retries_total", labels.encode("utf-8", "replace"))
        meter.retries.bump(ctx.attempts - 1)

    def _count_tokens(self, RequestContext ctx):
        cdef Usage usage = ctx.usage
        for kind, value in (("input", usage.input_tokens), ("output", usage.output_tokens),
                            ("input_cache_read", usage.cached_tokens)):
            if value < 0 or (kind == "input_cache_read" and value == 0):
                continue
            # The model of the configuration, not of the client, keeps the number of series bounded.
            key = (kind, ctx.provider, ctx.backend)
            found = self.tokens.get(key)
            if found is None:
                labels = ",".join((
                    label("gen_ai_token_type", kind), label("gen_ai_operation_name", "chat"),
                    label("gen_ai_system", (ctx.provider or b"unknown").decode()),
                    label("gen_ai_request_model", (<BackendPlan>ctx.backend).name)))
                found = histogram(self.segment, b"gw_gen_ai_client_token_usage", labels.encode("utf-8", "replace"),
                                  TOKENS, 1)
                self.tokens[key] = found
            (<Histogram>found).observe_scaled(value)

    cdef BindMeter bind_meter(self, BindPlan bind):
        meter = self.binds.get(bind.key)
        if meter is None:
            labels = ",".join((label("bind", bind.key), label("protocol", "https" if bind.secure else "http")))
            meter = BindMeter(self.segment, labels)
            self.binds[bind.key] = meter
        return <BindMeter>meter
