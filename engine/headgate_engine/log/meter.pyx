"""Metrics of requests and connections, in the families of headgate.telemetry.families."""

from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcmp

from headgate_engine.context.headers cimport HEAD_CONNECT, MessageHead
from headgate_engine.context.media cimport media_type_is
from headgate_engine.context.request cimport RequestContext
from headgate_engine.context.trace_context cimport TraceContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.log.labels cimport added_labels, place_labels, plan_of
from headgate_engine.log.model_meter cimport ModelMeters
from headgate_engine.plan.plans cimport BackendPlan, BindPlan, ListenerPlan, MeteredPlan
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram, RequestSeries
from headgate_engine.shared.segment cimport Segment

from headgate_engine.log.labels import label

# Methods with a label value of their own. All others, which clients can invent, are `other`.
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "other")
cdef list METHOD_BYTES = [name.encode() for name in METHODS]
# The same, without `other`, for comparisons.
ctypedef const char* MethodText
cdef MethodText[9] METHOD_TEXTS
cdef uint32_t[9] METHOD_LENGTHS
for _method in range(9):
    METHOD_TEXTS[_method] = <bytes>METHOD_BYTES[_method]
    METHOD_LENGTHS[_method] = <uint32_t>len(<bytes>METHOD_BYTES[_method])

HANDSHAKE_SECONDS = (0.0005, 0.0015, 0.0043, 0.0126, 0.0368, 0.108, 0.316, 0.924, 2.71, 8)
PROCESSING_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)
REQUEST_SECONDS = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 80)
CALL_SECONDS = REQUEST_SECONDS
# How long streams last that have no end of their own.
STREAM_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 7200, 14400, 28800, 86400, 604800)
# What a call to a backend is for, by the protocol of the backend. Others are `Http`.
SUBTYPES = {"llm": "Llm", "mcp": "Mcp"}
# Kinds of streams that last as long as their client wants them, by number.
STREAM_KINDS = ("", "upgrade", "tunnel", "events")
cdef tuple _stream_kinds = STREAM_KINDS

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


cdef inline bint is_get(MessageHead head) noexcept:
    """Whether the method is the first of METHODS, by its bytes: memcmp(3) costs a call."""
    cdef const char* method = head.data + head.method_off
    return head.method_len == 3 and method[0] == b"G" and method[1] == b"E" and method[2] == b"T"


cdef int method_index(MessageHead head) noexcept:
    cdef int i
    cdef uint32_t length = head.method_len
    if is_get(head):
        return 0
    for i in range(1, 9):
        if length == METHOD_LENGTHS[i] and memcmp(head.data + head.method_off, METHOD_TEXTS[i], length) == 0:
            return i
    return 9


cdef int stream_kind(RequestContext ctx) noexcept:
    """Which of STREAM_KINDS an answer is, 0 for none. A model's answer is none: its time is what the client waits for."""
    cdef MessageHead head = ctx.head
    if ctx.status == 101:
        return 1
    if ctx.status < 200 or ctx.status >= 300:
        return 0
    if head.flags & HEAD_CONNECT:
        return 2
    if ctx.response is None or ctx.llm is not None:
        return 0
    # Which requests can have such an answer is cheaper to tell than what its media type is.
    if not is_get(head) and (ctx.protocol is None or ctx.protocol != "mcp" or not listens(ctx)):
        return 0
    return 3 if media_type_is(ctx.response, b"text/event-stream", 17) else 0


cdef bint listens(RequestContext ctx) noexcept:
    """Whether an MCP request has subscribed to notifications (revision 2026-07-28)."""
    if ctx.log_fields is not None:
        for key, value in ctx.log_fields:
            if key == "mcp.method.name":
                return value == "subscriptions/listen"
    return False


cdef class RequestMeters:
    def __init__(self, Segment segment):
        self.segment = segment
        self.labelled = {}
        self.processing = {}
        self.refused = {}
        self.streams = {}
        self.calls = {}
        self.models = ModelMeters(segment)
        self.generation = -1

    cdef int count(self, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1:
        cdef PlanMeter meter
        cdef RequestSeries series
        cdef BindMeter port
        cdef bint inner
        cdef int stream
        if self.segment is None:
            return 0
        meter = self._find(ctx, bind)
        # A request that was handed on within the gateway is counted where its client sent it.
        inner = ctx.hops > 0 or bind.untraced
        stream = stream_kind(ctx)
        if not inner:
            series = meter.series if bind.metric_labels is None else self._labelled(meter, ctx, bind)
            if stream:
                series.count_stream(<int64_t>ctx.response_bytes)
                self._count_stream(ctx, bind, stream)
            else:
                series.count(ctx.finished_ns - ctx.started_ns, <int64_t>ctx.response_bytes)
        if ctx.upstream_started_ns:
            # Without a time of its own, what comes first of a stream counts as on its way with the head.
            self._count_processing(meter, ctx, bind, called_ns, ctx.head_received_ns if stream and not sent_ns else sent_ns)
        port = meter.port
        if ctx.request_bytes and not inner:
            port.received.bump(<int64_t>ctx.request_bytes)
        if ctx.response_bytes and not inner:
            port.sent.bump(<int64_t>ctx.response_bytes)
        if ctx.attempts > 1:
            self._retries(meter, ctx, bind)
        if ctx.llm is not None and (<LlmCall>ctx.llm).attempts is not None:
            if bind.generation != self.generation:
                self._forget(bind.generation)
            self.models.count(<LlmCall>ctx.llm, self._place(ctx, bind))
        return 0

    cdef int exemplify(self, RequestContext ctx, BindPlan bind) except -1:
        cdef TraceContext trace = ctx.trace_context
        cdef RequestSeries series
        cdef PlanMeter meter
        if self.segment is None:
            return 0
        if ctx.hops == 0 and not stream_kind(ctx):
            meter = self._find(ctx, bind)
            series = meter.series if bind.metric_labels is None else self._labelled(meter, ctx, bind)
            series.exemplify(ctx.finished_ns - ctx.started_ns, trace.trace_id, trace.span_id)
        if ctx.llm is not None:
            self.models.exemplify(<LlmCall>ctx.llm, self._place(ctx, bind), trace)
        return 0

    cdef int _forget(self, int64_t generation) except -1:
        """Names of earlier configurations must not accumulate."""
        self.models.forget()
        self.labelled = {}
        self.processing = {}
        self.streams = {}
        self.generation = generation
        return 0

    cdef str _place(self, RequestContext ctx, BindPlan bind):
        cdef str place = place_labels(ctx, bind)
        return place if bind.metric_labels is None else place + added_labels(ctx, bind)

    cdef int _count_stream(self, RequestContext ctx, BindPlan bind, int kind) except -1:
        """Count how long a stream has lasted. A series without room is not cached."""
        cdef str text = label("kind", _stream_kinds[kind]) + "," + self._place(ctx, bind)
        cdef Histogram found = <Histogram>self.streams.get(text)
        if found is None:
            found = Histogram(self.segment, b"gw_stream_duration_seconds\0" + text.encode("utf-8", "replace"), STREAM_SECONDS)
            if not found.held.other:
                while len(self.streams) >= MAX_LABELLED:
                    del self.streams[next(iter(self.streams))]
                self.streams[text] = found
        found.observe_scaled(ctx.finished_ns - ctx.started_ns)
        return 0

    cdef int _count_processing(
            self, PlanMeter meter, RequestContext ctx, BindPlan bind, int64_t called_ns, int64_t sent_ns) except -1:
        cdef ProcessingMeter processing = meter.processing
        if processing is None:
            processing = self._processing_meter(meter, ctx, bind)
        processing.request.observe_scaled(ctx.upstream_started_ns - ctx.started_ns)
        if called_ns and (ctx.head_received_ns or not stream_kind(ctx)):
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
            text += added_labels(ctx, bind)
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
        if self.segment is None or called_ns == 0:
            return 0
        if ctx.head_received_ns >= called_ns:
            now_ns = ctx.head_received_ns
        elif stream_kind(ctx):
            return 0                       # a tunnel without a head: its time is no time of a call
        self.calls_of(ctx.protocol).observe_scaled(now_ns - called_ns)
        return 0

    cdef int count_refused_retry(self, RequestContext ctx, BindPlan bind) except -1:
        cdef Counter found
        cdef str text
        if self.segment is None:
            return 0
        text = place_labels(ctx, bind) + added_labels(ctx, bind)
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
        cdef str text = meter.labels + added_labels(ctx, bind)
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
            labels = self._labels(ctx, bind, method_index(ctx.head)) + added_labels(ctx, bind)
            retries = Counter(self.segment, b"gw_retries_total\0" + labels.encode("utf-8", "replace"))
            if bind.metric_labels is None and not retries.held.other:
                meter.retries = retries
        retries.bump(ctx.attempts - 1)

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
