"""Spans of requests; see spans.pxd. A span is a field of ScopeSpans, so that those of many requests are joined by writing
them one after the other.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from headgate_engine.clock cimport monotonic_ns, wall_ns
from headgate_engine.context.headers cimport H_CONTENT_TYPE, MessageHead
from headgate_engine.context.random cimport next_random
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.context.trace_context cimport SPAN_ID, TRACE_ID, TraceContext, random_hex
from headgate_engine.expr.program cimport Program
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall
from headgate_engine.log.otlp_fields cimport OtlpFields
from headgate_engine.log.otlp_sink cimport OtlpSink
from headgate_engine.log.protobuf cimport (
    close_message, open_message, put_attribute, key_of, put_fixed32, put_fixed64, put_hex, put_str, put_text)
from headgate_engine.log.span_names cimport (
    HIDE_ERROR, append_route, put_label, put_number, put_request_attributes, put_rpc_attributes, put_server)
from headgate_engine.wire.buffer cimport ByteBuffer, put

from headgate_engine.expr.values import EvaluationError
from headgate_engine.log.span_names import HIDABLE

cdef enum:
    # Tags of ScopeSpans.spans and of Span.
    SPANS = 0x12
    TRACE = 0x0A
    SPAN = 0x12
    PARENT = 0x22
    NAME = 0x2A
    KIND = 0x30
    START = 0x39
    END = 0x41
    ATTRIBUTES = 0x4A
    DROPPED_ATTRIBUTES = 0x50
    LINKS = 0x6A
    STATUS = 0x7A
    # Of Status.
    MESSAGE = 0x12
    CODE = 0x18
    FAILED = 2
    # Span.flags is field 16: two bytes. The client's span is remote.
    IS_REMOTE = 0x300
    SAMPLED = 1

cdef dict GEN_AI_OPERATIONS = {"embeddings": b"embeddings", "images": b"generate_content"}


cdef class Sampling:
    def __init__(self, double ratio=0.0, Program program=None):
        if not 0 <= ratio <= 1:
            raise ValueError(f"{ratio} is no share of requests")
        self.ratio = ratio
        self.program = program

    cdef bint chooses(self, RequestContext ctx) except -1:
        cdef double share = self.ratio
        if self.program is not None:
            try:
                found = self.program.evaluate(ctx)
                share = float(found) if isinstance(found, (bool, int, float)) else float(getattr(found, "value", 0))
            except (EvaluationError, TypeError, ValueError):
                return False
        if share <= 0:
            return False
        return share >= 1 or <double>(next_random() >> 11) * 1.1102230246251565e-16 < share       # 2 ** -53


cdef class TracePlan:
    def __init__(self, OtlpFields fields not None, OtlpSink sink not None, Sampling random not None, Sampling client not None,
                 Program name=None):
        self.fields = fields
        self.sink = sink
        self.random = random
        self.client = client
        self.name = name
        self.hidden = 0
        for key in (*fields.remove, *fields.removed):
            self.hidden |= <uint32_t>HIDABLE.get(key, 0)


cdef RequestSpans new_spans(TracePlan plan):
    cdef RequestSpans found = RequestSpans.__new__(RequestSpans)
    found.plan = plan
    found.sampled = True
    found.epoch_ns = wall_ns() - monotonic_ns()
    found.grpc_status = -1
    return found


cdef bint is_grpc(MessageHead head) noexcept:
    cdef int at = head.find_id(H_CONTENT_TYPE, 0)
    return at >= 0 and head.spans[at].value_len >= 16 and (
        head.data[head.spans[at].value_off:head.spans[at].value_off + 16] == b"application/grpc")


@cython.freelist(16)
cdef class RequestSpans(TraceContext):
    def __init__(self, *args, **kwargs):
        raise TypeError("made for a request")

    cdef const char* parent(self) noexcept:
        if self.calling:
            return &self.call_id[0]
        return &self.span_id[0]

    cdef int take(self, TraceContext found) except -1:
        memcpy(self.trace_id, found.trace_id, TRACE_ID)
        memcpy(self.span_id, found.span_id, SPAN_ID)
        memcpy(self.parent_id, found.parent_id, SPAN_ID)
        self.has_parent = found.has_parent
        self.client_sampled = found.client_sampled
        return 0

    # -- attempts --------------------------------------------------------------------------------------------------------
    cdef int begin_call(self, RequestContext ctx, bint own) except -1:
        memcpy(self.previous_id, self.call_id, SPAN_ID)
        random_hex(self.call_id)
        self.calling = True
        self.own = own
        self.calls += 1
        self.call_ns = monotonic_ns()
        self.call_status = 0
        self.grpc_status = -1
        return self.put(ctx.head, self.call_id)

    cdef int end_call(self, RequestContext ctx, str detail, int64_t now_ns) except -1:
        cdef Py_ssize_t start
        if not self.calling:
            return 0
        self.calling = False
        if not self.room():
            return 0
        start = self.children.length
        try:
            return self._call_span(ctx, detail, now_ns)
        except BaseException:
            self.children.length = start
            raise

    cdef bint room(self) except -1:
        if self.children is None:
            self.children = ByteBuffer()
        if self.child_count >= MOST_CHILDREN:
            self.dropped += 1
            return False
        self.child_count += 1
        return True

    cdef int _open(self, ByteBuffer out, const char* span_id, const char* parent, int kind, int64_t start_ns, int64_t end_ns,
                   ) except -1:
        put_hex(out, TRACE, self.trace_id, TRACE_ID)
        put_hex(out, SPAN, span_id, SPAN_ID)
        if parent != NULL:
            put_hex(out, PARENT, parent, SPAN_ID)
        out.append_byte(KIND)
        out.append_byte(<char>kind)
        put_fixed64(out, START, <uint64_t>(self.epoch_ns + start_ns))
        return put_fixed64(out, END, <uint64_t>(self.epoch_ns + max(end_ns, start_ns)))

    cdef int _fail(self, ByteBuffer out, str detail) except -1:
        cdef Py_ssize_t at = open_message(out, STATUS)
        if detail is not None:
            put_str(out, MESSAGE, detail)
        out.append_byte(CODE)
        out.append_byte(FAILED)
        return close_message(out, at)

    cdef int _call_span(self, RequestContext ctx, str detail, int64_t now_ns) except -1:
        cdef ByteBuffer out = self.children
        cdef Py_ssize_t at = open_message(out, SPANS)
        cdef Py_ssize_t link
        cdef bint failed = detail is not None or self.call_status >= 400 or self.grpc_status > 0
        self._open(out, self.call_id, self.span_id, KIND_CLIENT, self.call_ns, now_ns)
        put_label(out, "gw.outbound.kind", b"Primary")
        if ctx.provider is not None:
            self._model_attributes(out, ctx)
        elif self.own:
            self._tool_attributes(out, ctx)
        else:
            self._http_attributes(out, ctx)
        if ctx.endpoint is not None:
            put_server(out, ctx.endpoint, len(ctx.endpoint), 0)
        if self.call_status:
            put_number(out, "http.response.status_code", self.call_status)
        if failed:
            put_label(out, "error.type", b"%d" % self.call_status if self.call_status >= 400 else b"_OTHER")
            self._fail(out, detail)
        if self.calls > 1:
            put_number(out, "http.request.resend_count", self.calls - 1)
            link = open_message(out, LINKS)
            put_hex(out, TRACE, self.trace_id, TRACE_ID)
            put_hex(out, SPAN, self.previous_id, SPAN_ID)
            close_message(out, link)
        return close_message(out, at)

    cdef int _http_attributes(self, ByteBuffer out, RequestContext ctx) except -1:
        cdef MessageHead head = ctx.head
        cdef bytes method = head.data[head.method_off:head.method_off + head.method_len]
        put_label(out, "gw.outbound.subtype", b"Http")
        if is_grpc(head):
            put_rpc_attributes(out, ctx, self.grpc_status, 0)
            return put_text(out, NAME, head.data + head.target_off + 1, max(<Py_ssize_t>head.path_len - 1, 0))
        put_label(out, "http.request.method", method)
        put_label(out, "url.path", head.data[head.target_off:head.target_off + head.path_len])
        name = method if ctx.endpoint is None else method + b" " + ctx.endpoint
        return put_text(out, NAME, <bytes>name, len(<bytes>name))

    cdef int _model_attributes(self, ByteBuffer out, RequestContext ctx) except -1:
        """A call of a model (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/)."""
        cdef LlmCall call = <LlmCall?>ctx.llm if ctx.llm is not None else None
        cdef LlmAttempt attempt = None
        cdef TokenUsage usage = None
        cdef bytes operation = b"chat"
        cdef bytes model = ctx.requested_model
        cdef Py_ssize_t ended = 0
        if call is not None:
            operation = GEN_AI_OPERATIONS.get(call.format, b"chat")
            if call.model is not None:
                model = call.model.encode("utf-8", "replace")
            if call.attempts is not None:
                ended = len(call.attempts)
            if ended >= self.calls and ended:
                attempt = <LlmAttempt>call.attempts[ended - 1]
        put_label(out, "gw.outbound.subtype", b"Llm")
        put_label(out, "gen_ai.operation.name", operation)
        put_label(out, "gen_ai.provider.name", ctx.provider)
        put_label(out, "gen_ai.request.model", model)
        if attempt is not None:
            if attempt.response_model is not None:
                put_label(out, "gen_ai.response.model", attempt.response_model.encode("utf-8", "replace"))
            if attempt.usage is not None:
                usage = attempt.usage
        if usage is not None:
            if usage.input_tokens >= 0:
                put_number(out, "gen_ai.usage.input_tokens", usage.input_tokens)
            if usage.output_tokens >= 0:
                put_number(out, "gen_ai.usage.output_tokens", usage.output_tokens)
            if usage.cached_tokens >= 0:
                put_number(out, "gen_ai.usage.cache_read.input_tokens", usage.cached_tokens)
        name = operation if model is None else operation + b" " + model
        return put_text(out, NAME, <bytes>name, len(<bytes>name))

    cdef int _tool_attributes(self, ByteBuffer out, RequestContext ctx) except -1:
        """A call of MCP servers (https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/)."""
        cdef str method = None, target = None
        put_label(out, "gw.outbound.subtype", b"Mcp")
        if ctx.log_fields is not None:
            for key, value in ctx.log_fields:
                if type(value) is not str or not (key.startswith("mcp.") or key.startswith("gen_ai.")):
                    continue
                put_label(out, key, (<str>value).encode("utf-8", "replace"))
                if key == "mcp.method.name":
                    method = value
                elif key == "gen_ai.tool.name" or key == "gen_ai.prompt.name":
                    target = value
        if method == "tools/call":
            put_label(out, "gen_ai.operation.name", b"execute_tool")
        if method is None:
            return put_str(out, NAME, ctx.head.method)
        return put_str(out, NAME, method if target is None else f"{method} {target}")

    # -- calls that steps and handlers make --------------------------------------------------------------------------------
    def nested(self, str name not None, tuple ids not None, tuple times not None, attributes, str failure=None):
        """Add a client span that has ended. ids: its own and that of the span above; times: its start and end (ns of
        CLOCK_MONOTONIC); attributes: pairs of name and value; failure: why it failed."""
        cdef bytes own = ids[0].encode("ascii"), above = ids[1].encode("ascii")
        cdef int64_t start_ns = times[0], end_ns = times[1]
        cdef ByteBuffer out
        cdef Py_ssize_t at, start
        if self.plan is None or len(own) != SPAN_ID or len(above) != SPAN_ID or not self.room():
            return
        out = self.children
        start = out.length
        try:
            at = open_message(out, SPANS)
            self._open(out, own, above, KIND_CLIENT, start_ns, end_ns)
            put_str(out, NAME, name)
            for key, value in attributes:
                put_attribute(out, ATTRIBUTES, key_of(key), value)
            if failure is not None:
                self._fail(out, failure)
            close_message(out, at)
        except BaseException:
            out.length = start
            raise

    @property
    def parent_of_calls(self):
        return self.parent()[:SPAN_ID].decode("ascii")

    # -- the end -----------------------------------------------------------------------------------------------------------
    cdef int finish(self, RequestContext ctx) except -1:
        cdef TracePlan plan = self.plan
        cdef OtlpSink sink
        cdef ByteBuffer out
        cdef Py_ssize_t start
        if plan is None:
            return 0
        self.end_call(ctx, ctx.error if self.call_status == 0 else None, ctx.finished_ns)
        self.plan = None
        sink, out = plan.sink, plan.sink.waiting
        if not plan.fields.wants(ctx) or not sink.admits(1 + self.child_count):
            return 0
        start = out.length
        try:
            self._request_span(out, ctx, plan)
            if self.children is not None:
                put(out, self.children.data, self.children.length)
        except BaseException:
            out.length = start
            raise
        finally:
            plan.fields.kept = plan.fields.usual
        sink.added(1 + self.child_count)
        return 1

    cdef int _request_span(self, ByteBuffer out, RequestContext ctx, TracePlan plan) except -1:
        cdef Py_ssize_t at = open_message(out, SPANS)
        cdef bint grpc = is_grpc(ctx.head)
        self._open(out, self.span_id, self.parent_id if self.has_parent else NULL, KIND_SERVER, ctx.started_ns, ctx.finished_ns)
        # Field 16: a tag of two bytes.
        out.append_byte(<char>0x85)
        put_fixed32(out, 1, SAMPLED | (IS_REMOTE if self.has_parent else 0x100))
        put_name(out, ctx, plan, grpc)
        plan.fields.write_fields(out, ctx, plan.fields._named(ctx))
        put_request_attributes(out, ctx, plan.hidden)
        if grpc:
            put_rpc_attributes(out, ctx, self.grpc_status, plan.hidden)
        if self.dropped:
            put_number(out, "gw.spans.dropped", self.dropped)
        if ctx.status >= 500 or ctx.status == 0 or ctx.error is not None and ctx.status < 400 or self.grpc_status > 0:
            if not plan.hidden & HIDE_ERROR:
                put_label(out, "error.type", error_type(ctx))
            self._fail(out, ctx.error)
        return close_message(out, at)


cdef bytes error_type(RequestContext ctx):
    if ctx.reason is not None:
        return ctx.reason.encode("utf-8", "replace")
    return b"%d" % ctx.status if ctx.status >= 500 else b"_OTHER"


cdef int put_name(ByteBuffer out, RequestContext ctx, TracePlan plan, bint grpc) except -1:
    """The name of a request's span: the configured one, the MCP method, the gRPC method, or method and route."""
    cdef MessageHead head = ctx.head
    cdef ByteBuffer text
    if plan.name is not None:
        try:
            found = plan.name.evaluate(ctx)
            if type(found) is str:
                return put_str(out, NAME, found)
        except EvaluationError:
            pass
    if ctx.log_fields is not None and ctx.protocol == "mcp":
        for key, value in ctx.log_fields:
            if key == "mcp.method.name" and type(value) is str:
                return put_str(out, NAME, value)
    if grpc and ctx.target_len > 1:
        return put_text(out, NAME, head.data + ctx.target_off + 1, ctx.target_len - 1)
    text = ByteBuffer()
    text.append(head.data + head.method_off, head.method_len)
    if ctx.rule is not None:
        text.append_byte(32)
        append_route(text, ctx)
    return put_text(out, NAME, text.data, text.length)
