"""Spans of a request; see spanned.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport RequestContext
from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID, TraceContext, random_hex
from headgate_engine.link.backend cimport Backend, RoutedRequest
from headgate_engine.link.contract cimport ClientStream, ServerStream
from headgate_engine.link.core cimport RequestCore
from headgate_engine.link.grpc_status cimport grpc_status
from headgate_engine.link.observer cimport RequestObserver
from headgate_engine.log.spans cimport RequestSpans, TracePlan, new_spans
from headgate_engine.plan.plans cimport ListenerPlan, RouteGroup
from headgate_engine.plan.step cimport CONTINUE, WAIT_BODY, Step

from libc.stdint cimport int64_t

from headgate_engine.link import client as clients
from headgate_engine.log.span_names import GRPC_CODES


cdef int begin_trace(RequestCore request) except -1:
    cdef RequestContext ctx = request.ctx
    cdef TracePlan plan = <TracePlan?>request.bind.tracing
    cdef TraceContext found = TraceContext.__new__(TraceContext)
    cdef RequestSpans spans
    if request.bind.untraced:
        return 0                           # the worker that relays it has begun
    found.begin(ctx.head)
    ctx.trace_context = found
    if ctx.hops:
        sampled = found.client_sampled     # it was handed on within this process, where that was decided
    else:
        sampled = (plan.client if found.has_parent else plan.random).chooses(ctx)
    if not sampled:
        # A client's field goes on as it is: nothing stands between its span and those of the backend.
        return 0 if found.has_parent else found.put(ctx.head, found.span_id)
    spans = new_spans(plan)
    spans.take(found)
    ctx.trace_context = spans
    spans.put(ctx.head, spans.span_id)
    request.observer = new_observer(spans, request.observer)
    return 0


cdef SpanObserver new_observer(RequestSpans spans, RequestObserver inner):
    cdef SpanObserver found = SpanObserver.__new__(SpanObserver)
    found.inner = inner
    found.spans = spans
    found.calls = new_calls(spans)
    return found


cdef NestedCalls new_calls(RequestSpans spans):
    cdef NestedCalls found = NestedCalls.__new__(NestedCalls)
    found.spans = spans
    return found


cdef object calls_of(RequestContext ctx):
    cdef TraceContext trace = ctx.trace_context
    return None if trace is None or not trace.sampled else new_calls(<RequestSpans?>trace)


# -- calls of steps and handlers -----------------------------------------------------------------------------------------
cdef str parent_field(RequestSpans spans, str span_id):
    """The `traceparent` that makes a span the parent of what is called."""
    return f"00-{spans.trace_id[:TRACE_ID].decode('ascii')}-{span_id}-01"


cdef list with_parent(headers, str parent):
    found = [(name, value) for name, value in headers if name.lower() != "traceparent"]
    found.append(("traceparent", parent))
    return found


cdef class NestedCalls:
    cdef RequestSpans spans
    cdef readonly str withdrawn

    def target_call(self):
        cdef RequestSpans spans = self.spans
        cdef TargetCall found = TargetCall.__new__(TargetCall)
        cdef char[SPAN_ID] own
        if spans.calling and spans.own:
            # The calls of targets have spans: the request's own would say the same again.
            self.withdrawn = parent_field(spans, spans.parent_of_calls)
            spans.calling = False
        random_hex(own)
        found.spans = spans
        found.span_id = own[:SPAN_ID].decode("ascii")
        found.parent = spans.parent_of_calls
        found.started_ns = monotonic_ns()
        return found

    def begin(self, str subtype not None, str where not None, str method not None, str target not None):
        cdef NestedCall found = NestedCall.__new__(NestedCall)
        cdef char[SPAN_ID] own
        random_hex(own)
        found.spans = self.spans
        found.span_id = own[:SPAN_ID].decode("ascii")
        found.parent = self.spans.parent_of_calls
        if self.spans.own and subtype == "Guardrail":
            # It guards the request of several targets: beside their calls, whose spans take the place of the own one's.
            found.parent = self.spans.span_id[:SPAN_ID].decode("ascii")
        found.subtype, found.where, found.method, found.target = subtype, where, method, target
        found.started_ns = monotonic_ns()
        return found


cdef class NestedCall:
    cdef RequestSpans spans             # None: it has ended
    cdef str span_id, parent, subtype, where, method, target
    cdef int64_t started_ns

    def fields(self, headers):
        return with_parent(headers, parent_field(self.spans, self.span_id))

    def end(self, int status, str failure=None, *, bint grpc=False):
        cdef RequestSpans spans = self.spans
        if spans is None:
            return
        self.spans = None
        host, _, port = self.where.rpartition(":")
        kind = "Primary" if self.subtype == "Mcp" else "Policy"
        told = [("gw.outbound.kind", kind), ("gw.outbound.subtype", self.subtype),
                ("server.address", host.strip("[]") or self.where)]
        if host and port.isdigit():
            told.append(("server.port", int(port)))
        if grpc:
            name = self.target.lstrip("/")
            code = GRPC_CODES[status] if 0 <= status < len(GRPC_CODES) else str(status)
            told += [("rpc.system.name", "grpc"), ("rpc.method", name), ("rpc.response.status_code", code)]
        else:
            name = f"{self.method} {self.where}"
            told += [("http.request.method", self.method), ("url.path", self.target.partition("?")[0])]
            if status:
                told.append(("http.response.status_code", status))
        if failure is None and not grpc and status >= 400:
            failure = f"status {status}"
        if failure is not None:
            told.append(("error.type", code if grpc else str(status) if status else "_OTHER"))
        spans.nested(name, (self.span_id, self.parent), (self.started_ns, monotonic_ns()), told, failure)


cdef class TargetCall:
    cdef RequestSpans spans             # None: it has ended
    cdef str span_id, parent, where
    cdef int64_t started_ns

    @property
    def traceparent(self):
        return None if self.spans is None else parent_field(self.spans, self.span_id)

    def begin(self, str subtype not None, str where not None, str method not None, str target not None):
        cdef NestedCall found
        if subtype == "Mcp":
            self.where = where
            return CarriedCall(self)
        found = new_calls(self.spans).begin(subtype, where, method, target)
        found.parent = self.span_id
        return found

    def finish(self, str name not None, attributes, str failure=None):
        cdef RequestSpans spans = self.spans
        self.spans = None
        if spans is None:
            return
        told = [("gw.outbound.kind", "Primary"), ("gw.outbound.subtype", "Mcp"), *attributes]
        if self.where is None:
            told.append(("network.transport", "pipe"))
        else:
            host, _, port = self.where.rpartition(":")
            told.append(("network.transport", "tcp"))
            told.append(("server.address", host.strip("[]") or self.where))
            if host and port.isdigit():
                told.append(("server.port", int(port)))
        spans.nested(name, (self.span_id, self.parent), (self.started_ns, monotonic_ns()), told, failure)


cdef class CarriedCall:
    """An HTTP call under a TargetCall, which has the span of both."""

    cdef TargetCall call

    def __init__(self, TargetCall call not None):
        self.call = call

    def fields(self, headers):
        parent = self.call.traceparent
        return list(headers) if parent is None else with_parent(headers, parent)

    def end(self, int status, str failure=None, *, bint grpc=False):
        self.call = None


# -- the way -------------------------------------------------------------------------------------------------------------
cdef class SpanObserver(RequestObserver):
    cdef ServerStream watch_client(self, ServerStream client):
        return client if self.inner is None else self.inner.watch_client(client)

    cdef ClientStream watch_upstream(self, ClientStream stream):
        return stream if self.inner is None else self.inner.watch_upstream(stream)

    cdef int listener_chosen(self, ListenerPlan listener) except -1:
        return 0 if self.inner is None else self.inner.listener_chosen(listener)

    cdef int route_chosen(self, RoutedRequest request, ListenerPlan listener) except -1:
        return 0 if self.inner is None else self.inner.route_chosen(request, listener)

    cdef int delegated(self, RoutedRequest request, RouteGroup group, bint matched) except -1:
        return 0 if self.inner is None else self.inner.delegated(request, group, matched)

    cdef int backend_chosen(self, RoutedRequest request) except -1:
        return 0 if self.inner is None else self.inner.backend_chosen(request)

    cdef int endpoint_chosen(self, bytes address) except -1:
        return 0 if self.inner is None else self.inner.endpoint_chosen(address)

    # -- steps -----------------------------------------------------------------------------------------------------------
    cdef int run_steps(self, RoutedRequest request, tuple steps, int phase) except -1:
        if not steps:
            return CONTINUE if self.inner is None else self.inner.run_steps(request, steps, phase)
        token = clients.SPANS.set(self.calls)
        try:
            return run_all(request.ctx, steps) if self.inner is None else self.inner.run_steps(request, steps, phase)
        finally:
            clients.SPANS.reset(token)

    cdef int resumed(self, RoutedRequest request, int verdict) except -1:
        return 0 if self.inner is None else self.inner.resumed(request, verdict)

    cdef int failed(self, RoutedRequest request, str detail) except -1:
        if self.inner is not None:
            self.inner.failed(request, detail)
        return self.spans.end_call(request.ctx, detail, monotonic_ns())

    # -- the backend -----------------------------------------------------------------------------------------------------
    cdef int dispatch(self, RoutedRequest request, Backend backend) except -1:
        if not backend.wants_body:
            return backend.dispatch(request) if self.inner is None else self.inner.dispatch(request, backend)
        token = clients.SPANS.set(self.calls)
        try:
            return backend.dispatch(request) if self.inner is None else self.inner.dispatch(request, backend)
        finally:
            clients.SPANS.reset(token)

    cdef int attempt_started(self, RoutedRequest request, str target, bytes body) except -1:
        if self.inner is not None:
            self.inner.attempt_started(request, target, body)
        self.spans.end_call(request.ctx, "another attempt takes its place", monotonic_ns())
        return self.spans.begin_call(request.ctx, False)

    cdef int own_attempt_started(self, RoutedRequest request, bytes body) except -1:
        if self.inner is not None:
            self.inner.own_attempt_started(request, body)
        return self.spans.begin_call(request.ctx, True) if request.ctx.protocol == "mcp" else 0

    cdef int attempt_ended(self, RoutedRequest request, int status, str detail) except -1:
        if self.inner is not None:
            self.inner.attempt_ended(request, status, detail)
        if status:
            self.spans.call_status = status
            return 0
        return self.spans.end_call(request.ctx, None if self.spans.call_status else detail or "given up", monotonic_ns())

    cdef int connecting_again(self) except -1:
        return 0 if self.inner is None else self.inner.connecting_again()

    cdef int retrying(self, RoutedRequest request, int number) except -1:
        if self.inner is not None:
            self.inner.retrying(request, number)
        return self.spans.end_call(
            request.ctx, None if self.spans.call_status else request.ctx.error or "failed", monotonic_ns())

    # -- the response ----------------------------------------------------------------------------------------------------
    cdef int response_head(self, RoutedRequest request, MessageHead head) except -1:
        self.spans.call_status = head.status
        self.note_trailers(head, None)
        return 0 if self.inner is None else self.inner.response_head(request, head)

    cdef int note_trailers(self, MessageHead head, MessageHead trailers) except -1:
        cdef int found = grpc_status(head, trailers)
        if 0 <= found <= 16:
            self.spans.grpc_status = found
        return 0

    cdef int trailers_came(self, RoutedRequest request, MessageHead trailers) except -1:
        if request.ctx.response is not None:
            self.note_trailers(request.ctx.response, trailers)
        return 0 if self.inner is None else self.inner.trailers_came(request, trailers)

    cdef int head_kept(self, RoutedRequest request, Backend backend) except -1:
        return 0 if self.inner is None else self.inner.head_kept(request, backend)

    cdef int raw_data(self, const char* p, Py_ssize_t n) except -1:
        return 0 if self.inner is None else self.inner.raw_data(p, n)

    cdef int raw_end(self) except -1:
        return 0 if self.inner is None else self.inner.raw_end()

    cdef int response_broke(self, str detail) except -1:
        return 0 if self.inner is None else self.inner.response_broke(detail)

    cdef int response_ready(self) except -1:
        return 0 if self.inner is None else self.inner.response_ready()

    cdef int run_response_steps(self, RoutedRequest request, tuple steps, str level) except -1:
        cdef Step step
        if self.inner is not None:
            return self.inner.run_response_steps(request, steps, level)
        for step in steps:
            step.run(request.ctx)
        return 0

    cdef int response_changed(self, RoutedRequest request) except -1:
        return 0 if self.inner is None else self.inner.response_changed(request)

    cdef int answered(self, RoutedRequest request, int status) except -1:
        self.spans.call_status = status
        return 0 if self.inner is None else self.inner.answered(request, status)

    # -- the end ---------------------------------------------------------------------------------------------------------
    cdef int ending(self, RoutedRequest request) except -1:
        return 0 if self.inner is None else self.inner.ending(request)

    cdef int ended(self) except -1:
        self.calls = None
        return 0 if self.inner is None else self.inner.ended()


cdef int run_all(RequestContext ctx, tuple steps) except -1:
    """Runs steps as link.phases does it for requests that nobody watches."""
    cdef int verdict
    cdef int count = len(steps)
    while ctx.next_step < count:
        verdict = (<Step>steps[ctx.next_step]).run(ctx)
        if verdict == WAIT_BODY:
            return verdict
        ctx.next_step += 1
        if verdict != CONTINUE:
            return verdict
    ctx.next_step = 0
    return CONTINUE
