"""Metrics of requests and connections, in the families of headgate.telemetry.families."""

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall, per_token_ns
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, ListenerPlan, MeteredPlan, RoutePlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram, RequestSeries
from headgate_engine.shared.money cimport Money
from headgate_engine.shared.segment cimport Segment

from headgate_engine.expr.values import EvaluationError
from headgate_engine.log.fields import shown

# Methods with a label value of their own. All others, which clients can invent, are `other`.
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "other")
cdef list METHOD_BYTES = [name.encode() for name in METHODS]

HANDSHAKE_SECONDS = (0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8)
PROCESSING_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)
REQUEST_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80)
CALL_SECONDS = REQUEST_SECONDS
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
MODEL_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
PER_TOKEN_SECONDS = (0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
FIRST_TOKEN_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
# What a call to a backend is for, by the protocol of the backend. Others are `Http`.
SUBTYPES = {"llm": "Llm", "mcp": "Mcp"}
TOKEN_TYPES = ("input", "output", "input_cache_read", "input_cache_write")
# Longest value of a label, in characters.
MAX_LABEL = 256
# Most combinations of route, provider and models that a worker counts. Further ones have the models `other`.
MAX_MODELS = 1024


cdef enum:
    # Combinations that a plan caches. There are more if a backend invents statuses.
    MAX_COMBINATIONS = 32
    # Series with configured labels that a worker caches; the oldest are removed first.
    MAX_LABELLED = 1024
    # A series without room tries again after this number of requests, a power of two.
    PATIENCE = 1024


cdef class PlanMeter:
    pass


cdef class BindMeter:
    def __init__(self, Segment segment not None, str labels not None):
        text = labels.encode()
        self.connections = Counter(segment, b"gw_downstream_connections_total\0" + text)
        self.refused = Counter(segment, b"gw_downstream_refused_total\0" + text)
        self.received = Counter(segment, b"gw_downstream_received_bytes_total\0" + text)
        self.sent = Counter(segment, b"gw_downstream_sent_bytes_total\0" + text)
        self.segment = segment
        self.labels = text

    cdef Histogram handshakes_of(self):
        if self.handshakes is None:
            self.handshakes = Histogram(
                self.segment, b"gw_tls_handshake_duration_seconds\0" + self.labels, HANDSHAKE_SECONDS)
        return self.handshakes


cdef class ProcessingMeter:
    """What the gateway itself takes for requests to one backend of one route. labels: those of the series."""

    def __init__(self, Segment segment not None, str labels not None):
        raw = labels.encode("utf-8", "replace")
        self.request = Histogram(segment, b"gw_request_processing_seconds\0" + raw, PROCESSING_SECONDS)
        self.response = Histogram(segment, b"gw_response_processing_seconds\0" + raw, PROCESSING_SECONDS)

    cdef bint lost(self):
        return self.request.held.other or self.response.held.other


cdef class ModelMeter:
    """The series of one provider, model and route. labels: those of the series."""

    def __init__(self, Segment segment not None, str labels not None):
        self.segment = segment
        self.labels = labels
        self.tokens = [None] * 4
        self.duration = Histogram(
            segment, b"gw_gen_ai_server_request_duration\0" + labels.encode("utf-8", "replace"), MODEL_SECONDS)

    cpdef count_tokens(self, TokenUsage usage):
        """Count input and output tokens if they are known, and cached tokens if there are any."""
        cdef int64_t[4] counts = [usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_write_tokens]
        cdef int kind
        for kind in range(4):
            if counts[kind] < 0 or (kind >= 2 and counts[kind] == 0):
                continue
            found = self.tokens[kind]
            if found is None:
                labels = label("gen_ai_token_type", TOKEN_TYPES[kind]) + "," + self.labels
                found = self.tokens[kind] = Histogram(
                    self.segment, b"gw_gen_ai_client_token_usage\0" + labels.encode("utf-8", "replace"), TOKENS, 1)
            (<Histogram>found).observe_scaled(counts[kind])

    cpdef count_cost(self, int64_t picos):
        """Add a cost in picodollars (1e-12 USD)."""
        if self.cost is None:
            self.cost = Money(
                self.segment, b"gw_gen_ai_client_cost_usd_total\0" + self.labels.encode("utf-8", "replace"))
        self.cost.pay(picos)

    cpdef count_stream(self, int64_t first_ns, int64_t per_token):
        """Count a stream's first event and its time per token. Both in ns, -1 if unknown."""
        if self.first_token is None or self.per_token is None:
            raw = self.labels.encode("utf-8", "replace")
        if self.first_token is None:
            self.first_token = Histogram(
                self.segment, b"gw_gen_ai_server_time_to_first_token\0" + raw, FIRST_TOKEN_SECONDS)
        self.first_token.observe_scaled(first_ns)
        if per_token < 0:
            return
        if self.per_token is None:
            self.per_token = Histogram(
                self.segment, b"gw_gen_ai_server_time_per_output_token\0" + raw, PER_TOKEN_SECONDS)
        self.per_token.observe_scaled(per_token)


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
    """Return `name="value"`, escaped (https://prometheus.io/docs/instrumenting/exposition_formats/)."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{text}"'


def label_value(Program program not None, RequestContext ctx not None):
    """Return the value of a configured label, `unknown` if the expression fails or has no value."""
    try:
        text = shown(program.evaluate(ctx))
    except EvaluationError:
        return "unknown"
    return "unknown" if text is None else str(text)[:MAX_LABEL]


cdef MeteredPlan plan_of(RequestContext ctx, BindPlan bind):
    """Return the innermost plan that a request has reached."""
    if ctx.route is not None:
        return <MeteredPlan>ctx.route
    return bind if ctx.listener is None else <MeteredPlan>ctx.listener


cdef str place_labels(RequestContext ctx, BindPlan bind):
    cdef MeteredPlan plan = plan_of(ctx, bind)
    cdef ListenerPlan listener = <ListenerPlan>ctx.listener
    cdef RoutePlan route = <RoutePlan>ctx.route
    token = None if listener is None else listener.token
    if plan.labels is None or plan.labels_bind is not bind.token or plan.labels_listener is not token:
        plan.labels = ",".join((
            label("bind", bind.key),
            label("gateway", "unknown" if listener is None else f"{listener.gateway_namespace}/{listener.gateway}"),
            label("listener", "unknown" if listener is None else listener.name),
            label("route", "unknown" if route is None else f"{route.namespace}/{route.name}"),
            label("route_rule", "unknown" if route is None or not route.rule_name else route.rule_name),
        ))
        plan.labels_bind, plan.labels_listener = bind.token, token
    return plan.labels


def route_labels(RequestContext ctx not None, BindPlan bind not None):
    """Return the labels of a request's port, gateway, listener and route, and the configured ones."""
    return place_labels(ctx, bind) + _added(ctx, bind)


cdef str _added(RequestContext ctx, BindPlan bind):
    """Return the configured labels, each after a comma."""
    cdef str found = ""
    if bind.metric_labels is not None:
        for name, program in bind.metric_labels:
            found += "," + label(name, label_value(<Program>program, ctx))
    return found


cdef class RequestMeters:
    def __init__(self, Segment segment):
        self.segment = segment
        self.labelled = {}
        self.processing = {}
        self.refused = {}
        self.models = {}
        self.calls = {}
        self.dropped = {}
        self.generation = -1

    cdef int count(self, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1:
        cdef PlanMeter meter
        cdef RequestSeries series
        cdef BindMeter port
        cdef bint inner
        if self.segment is None:
            return 0
        meter = self._find(ctx, bind)
        # A request that was handed on within the gateway is counted where its client sent it.
        inner = ctx.hops > 0 or bind.untraced
        if not inner:
            series = meter.series if bind.metric_labels is None else self._labelled(meter, ctx, bind)
            series.count(ctx.finished_ns - ctx.started_ns, <int64_t>ctx.response_bytes)
        if ctx.upstream_started_ns:
            self._count_processing(meter, ctx, bind, called_ns, sent_ns)
        port = meter.port
        if ctx.request_bytes and not inner:
            port.received.bump(<int64_t>ctx.request_bytes)
        if ctx.response_bytes and not inner:
            port.sent.bump(<int64_t>ctx.response_bytes)
        if ctx.attempts > 1:
            self._retries(meter, ctx, bind)
        if ctx.llm is not None:
            self._count_attempts(ctx, bind)
        return 0

    cdef int _count_processing(
            self, PlanMeter meter, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1:
        cdef ProcessingMeter processing = meter.processing
        if processing is None:
            processing = self._processing_meter(meter, ctx, bind)
        processing.request.observe_scaled(ctx.upstream_started_ns - ctx.started_ns)
        if called_ns:
            meter.calls.observe_scaled((ctx.head_received_ns or ctx.finished_ns) - called_ns)
        if ctx.head_received_ns and ctx.status:
            processing.response.observe_scaled((sent_ns or ctx.finished_ns) - ctx.head_received_ns)
        return 0

    cdef ProcessingMeter _processing_meter(self, PlanMeter meter, RequestContext ctx, BindPlan bind):
        """Return the series of a request's backend and route. Those that depend on the request are cached by labels."""
        cdef BackendPlan backend = <BackendPlan>ctx.backend
        cdef ProcessingMeter found
        cdef str text = label("backend", "unknown" if backend is None else backend.name) + "," + place_labels(ctx, bind)
        if bind.metric_labels is not None:
            text += _added(ctx, bind)
            found = <ProcessingMeter>self.processing.get(text)
            if found is not None:
                return found
        found = ProcessingMeter(self.segment, text)
        if bind.metric_labels is None:
            # One without room looks again when the next combination of labels is made.
            meter.processing = found
        elif not found.lost():
            while len(self.processing) >= MAX_LABELLED:
                del self.processing[next(iter(self.processing))]
            self.processing[text] = found
        return found

    cdef Histogram calls_of(self, str protocol):
        cdef str subtype = SUBTYPES.get(protocol, "Http")
        cdef Histogram found = <Histogram>self.calls.get(subtype)
        if found is None:
            labels = label("kind", "Primary") + "," + label("subtype", subtype)
            found = self.calls[subtype] = Histogram(
                self.segment, b"gw_upstream_call_duration_seconds\0" + labels.encode(), CALL_SECONDS)
        return found

    cdef int count_call(self, RequestContext ctx, int64_t called_ns, int64_t now_ns) except -1:
        if self.segment is None:
            return 0
        if ctx.head_received_ns >= called_ns:
            now_ns = ctx.head_received_ns
        self.calls_of(ctx.protocol).observe_scaled(now_ns - called_ns)
        return 0

    cdef int count_refused_retry(self, RequestContext ctx, BindPlan bind) except -1:
        cdef Counter found
        cdef str text
        if self.segment is None:
            return 0
        text = place_labels(ctx, bind) + _added(ctx, bind)
        found = <Counter>self.refused.get(text)
        if found is None:
            found = Counter(self.segment, b"gw_retries_refused_total\0" + text.encode("utf-8", "replace"))
            if not found.held.other:
                while len(self.refused) >= MAX_LABELLED:
                    del self.refused[next(iter(self.refused))]
                self.refused[text] = found
        found.bump(1)
        return 0

    cdef PlanMeter _find(self, RequestContext ctx, BindPlan bind):
        cdef int method = method_index(ctx.head)
        cdef MeteredPlan plan = plan_of(ctx, bind)
        cdef PlanMeter meter = <PlanMeter>plan.meters
        listener = None if ctx.listener is None else (<ListenerPlan>ctx.listener).token
        while meter is not None:
            if meter.backend is ctx.backend and meter.status == ctx.status and meter.method == method \
                    and meter.reason is ctx.reason and meter.listener is listener and meter.bind is bind.token \
                    and meter.protocol is ctx.protocol:
                if meter.series is None or not meter.series.held.other:
                    return meter
                meter.uses += 1
                if meter.uses & (PATIENCE - 1):
                    return meter
                meter.series = RequestSeries(self.segment, self._labels(ctx, bind, method), REQUEST_SECONDS)
                return meter
            meter = meter.next
        return self._make(plan, ctx, bind, method)

    cdef PlanMeter _make(self, MeteredPlan plan, RequestContext ctx, BindPlan bind, int method):
        """Add a new combination to the front of the plan's chain. If the chain is too long, remove the last one."""
        cdef PlanMeter meter = PlanMeter()
        cdef PlanMeter one = meter
        cdef int length = 1
        meter.backend = ctx.backend
        meter.protocol = ctx.protocol
        meter.reason = ctx.reason
        meter.status = ctx.status
        meter.method = method
        meter.bind = bind.token
        meter.listener = None if ctx.listener is None else (<ListenerPlan>ctx.listener).token
        if bind.metric_labels is None:
            meter.series = RequestSeries(self.segment, self._labels(ctx, bind, method), REQUEST_SECONDS)
        else:
            meter.labels = self._labels(ctx, bind, method)
        meter.port = self.bind_meter(bind, <ListenerPlan>ctx.listener)
        meter.calls = self.calls_of(ctx.protocol)
        meter.next = <PlanMeter>plan.meters
        plan.meters = meter
        while one.next is not None:
            length += 1
            if length > MAX_COMBINATIONS:
                one.next = None
                break
            one = one.next
        return meter

    cdef RequestSeries _labelled(self, PlanMeter meter, RequestContext ctx, BindPlan bind):
        """Return the series of a request with configured labels. A series without room is not cached."""
        cdef str text = meter.labels + _added(ctx, bind)
        cdef RequestSeries series = <RequestSeries>self.labelled.get(text)
        if series is None:
            series = RequestSeries(self.segment, text, REQUEST_SECONDS)
            if not series.held.other:
                while len(self.labelled) >= MAX_LABELLED:
                    del self.labelled[next(iter(self.labelled))]
                self.labelled[text] = series
        return series

    def _labels(self, RequestContext ctx, BindPlan bind, int method):
        """Return the labels of a request without the configured ones."""
        cdef BackendPlan backend = <BackendPlan>ctx.backend
        return ",".join((
            label("backend", "unknown" if backend is None else backend.name),
            label("protocol", ctx.protocol or "http"),
            label("method", METHODS[method]),
            label("status", ctx.status or "unknown"),
            label("reason", ctx.reason or "Upstream"),
            place_labels(ctx, bind),
        ))

    def _retries(self, PlanMeter meter, RequestContext ctx, BindPlan bind):
        cdef Counter retries = meter.retries
        if retries is None:
            labels = self._labels(ctx, bind, method_index(ctx.head)) + _added(ctx, bind)
            retries = Counter(self.segment, b"gw_retries_total\0" + labels.encode("utf-8", "replace"))
            if bind.metric_labels is None and not retries.held.other:
                meter.retries = retries
        retries.bump(ctx.attempts - 1)

    cdef int _count_attempts(self, RequestContext ctx, BindPlan bind) except -1:
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef LlmAttempt attempt
        cdef ModelMeter meter
        cdef int64_t per_token
        if call.attempts is None:
            return 0
        if bind.generation != self.generation:
            # Names of earlier configurations must not accumulate.
            self.models = {}
            self.dropped = {}
            self.labelled = {}
            self.processing = {}
            self.last = None
            self.generation = bind.generation
        for attempt in call.attempts:
            meter = self._model_meter(ctx, bind, call, attempt)
            meter.duration.observe_scaled(attempt.ended_ns - attempt.started_ns)
            if attempt.usage_source == "provider":
                meter.count_tokens(attempt.usage)
            if attempt.dropped is not None:
                self._count_dropped(ctx, bind, attempt)
            if attempt.cost is not None:
                meter.count_cost(attempt.cost.total)
            if attempt.streaming and attempt.first_event_ns:
                per_token = per_token_ns(attempt)
                meter.count_stream(attempt.first_event_ns - attempt.started_ns,
                                   per_token if attempt.usage_source == "provider" else -1)
        return 0

    cdef int _count_dropped(self, RequestContext ctx, BindPlan bind, LlmAttempt attempt) except -1:
        """Count the parameters that an attempt could not tell its provider."""
        cdef Counter counter
        place = place_labels(ctx, bind) if bind.metric_labels is None else route_labels(ctx, bind)
        for name in attempt.dropped:
            key = (place, attempt.provider, attempt.client_format, attempt.upstream_format, name)
            counter = <Counter>self.dropped.get(key)
            if counter is None:
                labels = ",".join((label("parameter", name), label("gen_ai_system", attempt.provider),
                                   label("client_format", attempt.client_format),
                                   label("upstream_format", attempt.upstream_format), place))
                counter = Counter(
                    self.segment, b"gw_gen_ai_unsupported_parameters_total\0" + labels.encode("utf-8", "replace"))
                if len(self.dropped) < MAX_MODELS and not counter.held.other:
                    self.dropped[key] = counter
            counter.bump(1)
        return 0

    cdef ModelMeter _model_meter(self, RequestContext ctx, BindPlan bind, LlmCall call, LlmAttempt attempt):
        cdef ModelMeter meter
        cdef str answered
        # Names that clients invent must not become series: a model that only a pattern allows counts if the provider
        # accepted it.
        cdef str model = attempt.model if call.known or 200 <= attempt.status < 300 or attempt.status == 101 else "unknown"
        if len(model) > MAX_LABEL:
            model = model[:MAX_LABEL]
        place = place_labels(ctx, bind) if bind.metric_labels is None else route_labels(ctx, bind)
        if (self.last is not None and self.last_place is place and self.last_provider == attempt.provider
                and self.last_model == model and self.last_answered == attempt.response_model
                and self.last_format == call.format):
            return self.last
        key = (place, attempt.provider, model, attempt.response_model, call.format)
        meter = self.models.get(key)
        if meter is None:
            if len(self.models) >= MAX_MODELS:
                model = answered = "other"
            else:
                answered = attempt.response_model
            meter = ModelMeter(self.segment, ",".join((
                label("gen_ai_operation_name", "embeddings" if call.format == "embeddings" else "chat"),
                label("gen_ai_system", attempt.provider), label("gen_ai_request_model", model[:MAX_LABEL] or "unknown"),
                label("gen_ai_response_model", (answered or "unknown")[:MAX_LABEL]), place)))
            if len(self.models) < MAX_MODELS and not meter.duration.held.other:
                self.models[key] = meter
        self.last, self.last_place, self.last_provider, self.last_model = meter, place, attempt.provider, model
        self.last_answered, self.last_format = attempt.response_model, call.format
        return meter

    cdef BindMeter bind_meter(self, BindPlan bind, ListenerPlan listener):
        """Return the series of a port's connections. listener: the one that they belong to, None: not known."""
        cdef BindMeter meter
        if listener is None:
            listener = bind.sole_listener
        if bind.port_meter is None:
            bind.port_meter = {}
        token = None if listener is None else listener.token
        meter = <BindMeter>(<dict>bind.port_meter).get(token)
        if meter is None:
            labels = ",".join((
                label("bind", bind.key),
                label("gateway", _gateway_of(bind) if listener is None else f"{listener.gateway_namespace}/{listener.gateway}"),
                label("listener", "unknown" if listener is None else listener.name),
                label("protocol", _protocol_of(bind, listener)),
            ))
            meter = (<dict>bind.port_meter)[token] = BindMeter(self.segment, labels)
        return meter


cdef str _protocol_of(BindPlan bind, ListenerPlan listener):
    if bind.protocol == "tcp" or listener is not None and listener.tcp is not None:
        return "tls" if bind.secure else "tcp"
    return "https" if bind.secure else "http"


cdef str _gateway_of(BindPlan bind):
    """Return the gateway of a port whose listeners all have the same one."""
    found = {f"{one.gateway_namespace}/{one.gateway}" for one in bind.listeners.listed()}
    return found.pop() if len(found) == 1 else "unknown"
