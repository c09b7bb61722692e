# Spans of requests that are sampled (opentelemetry.proto.trace.v1.Span): encoded as they end, given to the exporter with
# their request.

from headgate_engine.context.request cimport RequestContext
from headgate_engine.context.trace_context cimport SPAN_ID, TraceContext
from headgate_engine.expr.program cimport Program
from headgate_engine.log.otlp_fields cimport OtlpFields
from headgate_engine.log.otlp_sink cimport OtlpSink
from headgate_engine.wire.buffer cimport ByteBuffer

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum:
    # Spans below that of a request; further ones are counted in it (dropped child spans have no field of their own).
    MOST_CHILDREN = 64

cdef enum SpanKind:
    KIND_INTERNAL = 1
    KIND_SERVER = 2
    KIND_CLIENT = 3

cdef class Sampling:
    # A share of requests, or an expression that says it for each.
    cdef readonly double ratio          # 0..1
    cdef readonly Program program       # None: the ratio holds
    cdef bint chooses(self, RequestContext ctx) except -1

cdef class TracePlan:
    cdef readonly OtlpFields fields     # attributes of the request's span; its filter keeps whole traces out
    cdef readonly OtlpSink sink
    cdef readonly Sampling random       # of requests that begin a trace
    cdef readonly Sampling client       # of those that a client's trace has
    cdef readonly Program name          # of the request's span; None: the usual one
    cdef uint32_t hidden                # HiddenAttribute bits

cdef class RequestSpans(TraceContext):
    cdef TracePlan plan
    cdef ByteBuffer children            # spans that have ended
    cdef int child_count
    cdef readonly int dropped
    # -- the attempt that is under way -----------------------------------------------------------------------------------
    cdef bint calling
    cdef bint own                       # the backend makes the calls by itself
    cdef char[SPAN_ID] call_id
    cdef char[SPAN_ID] previous_id      # of the attempt before it
    cdef int calls                      # attempts until now
    cdef int64_t call_ns                # CLOCK_MONOTONIC
    cdef int call_status                # of its answer; 0: none came
    cdef int grpc_status                # of its answer; -1: none
    cdef int64_t epoch_ns               # what is added to CLOCK_MONOTONIC for the time of day
    # The place that the request has in its trace.
    cdef int take(self, TraceContext found) except -1
    # What nested calls have as their parent: the attempt's span while there is one.
    cdef const char* parent(self) noexcept
    # An attempt begins: its head gets the traceparent of its span.
    cdef int begin_call(self, RequestContext ctx, bint own) except -1
    # It ends; detail: why it failed, None if it did not.
    cdef int end_call(self, RequestContext ctx, str detail, int64_t now_ns) except -1
    # The request is over: its spans go to the exporter, unless the filter keeps them out. Returns whether they do.
    cdef int finish(self, RequestContext ctx) except -1
    cdef bint room(self) except -1
    cdef int _open(self, ByteBuffer out, const char* span_id, const char* parent, int kind, int64_t start_ns,
                   int64_t end_ns) except -1
    cdef int _fail(self, ByteBuffer out, str detail) except -1
    cdef int _request_span(self, ByteBuffer out, RequestContext ctx, TracePlan plan) except -1
    cdef int _http_attributes(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _call_span(self, RequestContext ctx, str detail, int64_t now_ns) except -1
    cdef int _model_attributes(self, ByteBuffer out, RequestContext ctx) except -1
    cdef int _tool_attributes(self, ByteBuffer out, RequestContext ctx) except -1

# The spans of a request that is sampled.
cdef RequestSpans new_spans(TracePlan plan)
