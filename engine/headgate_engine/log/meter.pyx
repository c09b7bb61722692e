"""Metrics of requests and connections, in the families of headgate.telemetry.families."""

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, Usage
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall, per_token_ns
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, ListenerPlan, RoutePlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.money cimport Money
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
MODEL_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
PER_TOKEN_SECONDS = (0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
FIRST_TOKEN_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
TOKEN_TYPES = ("input", "output", "input_cache_read", "input_cache_write")
# Longest value of a label, in characters.
MAX_LABEL = 256
# Combinations of route, provider and models that a worker counts apart; what comes later has the models `other`.
MAX_MODELS = 1024
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


def money(Segment segment, bytes family, bytes labels):
    """The sum of that series; once the segment is full, the one of everything without a place."""
    try:
        return Money(segment, family + b"\0" + labels)
    except SegmentFull:
        return Money.overflow(segment)


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


cdef class ModelMeter:
    """The series of one provider, model and route."""

    def __init__(self, Segment segment, str labels):
        self.segment = segment
        self.labels = labels
        self.tokens = [None] * 4
        self.duration = histogram(segment, b"gw_gen_ai_server_request_duration", labels.encode("utf-8", "replace"),
                                  MODEL_SECONDS, _SECONDS)

    cpdef count_tokens(self, Usage usage):
        """Input and output where they were told, caches where they were used."""
        cdef int64_t[4] counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens]
        cdef int kind
        for kind in range(4):
            if counts[kind] < 0 or (kind >= 2 and counts[kind] == 0):
                continue
            found = self.tokens[kind]
            if found is None:
                labels = label("gen_ai_token_type", TOKEN_TYPES[kind]) + "," + self.labels
                found = self.tokens[kind] = histogram(
                    self.segment, b"gw_gen_ai_client_token_usage", labels.encode("utf-8", "replace"), TOKENS, 1)
            (<Histogram>found).observe_scaled(counts[kind])

    cpdef count_cost(self, int64_t picos):
        if self.cost is None:
            self.cost = money(self.segment, b"gw_gen_ai_client_cost_usd_total", self.labels.encode("utf-8", "replace"))
        self.cost.pay(picos)

    cpdef count_stream(self, int64_t first_ns, int64_t per_token):
        """per_token: ns, -1 when it is not known."""
        if self.first_token is None or self.per_token is None:
            raw = self.labels.encode("utf-8", "replace")
        if self.first_token is None:
            self.first_token = histogram(self.segment, b"gw_gen_ai_server_time_to_first_token", raw,
                                         FIRST_TOKEN_SECONDS, _SECONDS)
        self.first_token.observe_scaled(first_ns)
        if per_token < 0:
            return
        if self.per_token is None:
            self.per_token = histogram(self.segment, b"gw_gen_ai_server_time_per_output_token", raw,
                                       PER_TOKEN_SECONDS, _SECONDS)
        self.per_token.observe_scaled(per_token)


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
        self.models = {}
        self.generation = -1

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
        if ctx.llm is not None:
            self._count_attempts(ctx, bind)
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

    cdef int _count_attempts(self, RequestContext ctx, BindPlan bind) except -1:
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef LlmAttempt attempt
        cdef ModelMeter meter
        cdef int64_t per_token
        if call.attempts is None:
            return 0
        if bind.generation != self.generation:
            # The names of what ran before must not pile up.
            self.models = {}
            self.last = None
            self.generation = bind.generation
        for attempt in call.attempts:
            meter = self._model_meter(ctx, bind, call, attempt)
            meter.duration.observe_scaled(attempt.ended_ns - attempt.started_ns)
            if attempt.usage_source == "provider":
                meter.count_tokens(attempt.usage)
            if attempt.cost is not None:
                meter.count_cost(attempt.cost.total)
            if attempt.streaming and attempt.first_event_ns:
                per_token = per_token_ns(attempt)
                meter.count_stream(attempt.first_event_ns - attempt.started_ns,
                                   per_token if attempt.usage_source == "provider" else -1)
        return 0

    cdef ModelMeter _model_meter(self, RequestContext ctx, BindPlan bind, LlmCall call, LlmAttempt attempt):
        cdef ModelMeter meter
        cdef str answered
        # Names that clients make up must not become series: those of patterns count when the provider knew them.
        cdef str model = attempt.model if call.known or 200 <= attempt.status < 300 or attempt.status == 101 else "unknown"
        if len(model) > MAX_LABEL:
            model = model[:MAX_LABEL]
        if (self.last is not None and self.last_bind is bind and self.last_listener is ctx.listener
                and self.last_route is ctx.route and self.last_provider == attempt.provider
                and self.last_model == model and self.last_answered == attempt.response_model
                and self.last_format == call.format):
            return self.last
        if bind.metric_labels is not None:
            key = (route_labels(ctx, bind), attempt.provider, model, attempt.response_model, call.format)
        else:
            key = (bind, ctx.listener, ctx.route, attempt.provider, model, attempt.response_model, call.format)
        meter = self.models.get(key)
        if meter is None:
            if len(self.models) >= MAX_MODELS:
                model = answered = "other"
            else:
                answered = attempt.response_model
            meter = ModelMeter(self.segment, ",".join((
                label("gen_ai_operation_name", "embeddings" if call.format == "embeddings" else "chat"),
                label("gen_ai_system", attempt.provider), label("gen_ai_request_model", model[:MAX_LABEL] or "unknown"),
                label("gen_ai_response_model", (answered or "unknown")[:MAX_LABEL]), route_labels(ctx, bind))))
            if len(self.models) < MAX_MODELS:
                self.models[key] = meter
        if bind.metric_labels is None:
            self.last, self.last_bind, self.last_listener, self.last_route = meter, bind, ctx.listener, ctx.route
            self.last_provider, self.last_model, self.last_answered = attempt.provider, model, attempt.response_model
            self.last_format = call.format
        return meter

    cdef BindMeter bind_meter(self, BindPlan bind):
        meter = self.binds.get(bind.key)
        if meter is None:
            labels = ",".join((label("bind", bind.key), label("protocol", "https" if bind.secure else "http")))
            meter = BindMeter(self.segment, labels)
            self.binds[bind.key] = meter
        return <BindMeter>meter
