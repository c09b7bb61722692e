"""Metrics of calls of models; see model_meter.pxd. Families are in headgate.telemetry.families."""

from libc.stdint cimport int64_t

from headgate_engine.context.request cimport TokenUsage
from headgate_engine.context.trace_context cimport TraceContext
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall, per_token_ns
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.histogram cimport Histogram
from headgate_engine.shared.money cimport Money
from headgate_engine.shared.segment cimport Segment

from headgate_engine.log.labels import MAX_LABEL, label

TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
MODEL_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
PER_TOKEN_SECONDS = (0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5)
FIRST_TOKEN_SECONDS = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
TOKEN_TYPES = ("input", "output", "input_cache_read", "input_cache_write")
# Most combinations of route, provider and models that a worker counts. Further ones have the models `other`.
MAX_MODELS = 1024
# Most types of errors of one model with a series of their own. Providers choose their statuses.
MAX_ERRORS = 16
# The type of all further errors, as OpenTelemetry's conventions name it.
OTHER_ERROR = "_OTHER"
cdef enum:
    SWITCHED = 101               # a realtime session: its time is that of its client


cdef class ModelMeter:
    """The series of one provider, model and route. labels: those of the series."""

    def __init__(self, Segment segment not None, str labels not None):
        self.segment = segment
        self.labels = labels
        self.tokens = [None] * 4
        self.durations = {}

    cdef bint lost(self):
        cdef Histogram found
        for found in self.durations.values():
            if found.held.other:
                return True
        return False

    cdef Histogram duration_of(self, str error):
        cdef Histogram found
        if not error and self.duration is not None:
            return self.duration
        found = <Histogram>self.durations.get(error)
        if found is None:
            if len(self.durations) >= MAX_ERRORS:
                error = OTHER_ERROR
            labels = label("error_type", error) + "," + self.labels
            found = self.durations[error] = Histogram(
                self.segment, b"gw_gen_ai_server_request_duration\0" + labels.encode("utf-8", "replace"), MODEL_SECONDS)
        if not error:
            self.duration = found
        return found

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


cdef str error_type(LlmAttempt attempt):
    """What the attribute `error.type` is: the status of an answer, else how the call failed; empty without an error."""
    if attempt.status >= 300 and attempt.outcome in ("answered", "refused"):
        return str(attempt.status)
    return "" if attempt.outcome == "answered" else attempt.outcome


cdef class ModelMeters:
    """The metrics of all models of a worker."""

    def __init__(self, Segment segment):
        self.segment = segment
        self.forget()

    cdef int forget(self) except -1:
        self.models = {}
        self.dropped = {}
        self.last = None
        return 0

    cdef int count(self, LlmCall call, str place) except -1:
        cdef LlmAttempt attempt
        cdef ModelMeter meter
        cdef int64_t per_token
        for attempt in call.attempts:
            if attempt.started_ns == 0:
                continue               # a guard, a limit or another policy has answered
            meter = self._meter(call, attempt, place)
            if attempt.status != SWITCHED:
                meter.duration_of(error_type(attempt)).observe_scaled(attempt.ended_ns - attempt.started_ns)
            if attempt.usage_source == "provider":
                meter.count_tokens(attempt.usage)
            if attempt.dropped is not None:
                self._count_dropped(attempt, place)
            if attempt.cost is not None:
                meter.count_cost(attempt.cost.total)
            if attempt.streaming and attempt.first_event_ns:
                per_token = per_token_ns(attempt)
                meter.count_stream(attempt.first_event_ns - attempt.started_ns,
                                   per_token if attempt.usage_source == "provider" else -1)
        return 0

    cdef int exemplify(self, LlmCall call, str place, TraceContext trace) except -1:
        """Make the trace of a request the exemplar of what its last attempt was counted as."""
        cdef LlmAttempt attempt
        cdef ModelMeter meter
        if not call.attempts:
            return 0
        attempt = <LlmAttempt>call.attempts[len(call.attempts) - 1]
        if attempt.started_ns == 0:
            return 0
        meter = self._meter(call, attempt, place)
        if attempt.status != SWITCHED:
            meter.duration_of(error_type(attempt)).exemplify(
                attempt.ended_ns - attempt.started_ns, trace.trace_id, trace.span_id)
        if attempt.streaming and attempt.first_event_ns and meter.first_token is not None:
            meter.first_token.exemplify(attempt.first_event_ns - attempt.started_ns, trace.trace_id, trace.span_id)
        return 0

    cdef int _count_dropped(self, LlmAttempt attempt, str place) except -1:
        """Count the parameters that an attempt could not tell its provider."""
        cdef Counter counter
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

    cdef ModelMeter _meter(self, LlmCall call, LlmAttempt attempt, str place):
        cdef ModelMeter meter
        cdef str answered
        # Names that clients invent must not become series: a model that only a pattern allows counts if the provider
        # accepted it.
        cdef str model = attempt.model if call.known or 200 <= attempt.status < 300 or attempt.status == SWITCHED else "unknown"
        if len(model) > MAX_LABEL:
            model = model[:MAX_LABEL]
        if (self.last is not None and self.last_place is place and self.last_provider == attempt.provider
                and self.last_model == model and self.last_answered == attempt.response_model
                and self.last_format == call.format):
            return self.last
        key = (place, attempt.provider, model, attempt.response_model, call.format)
        meter = self.models.get(key)
        if meter is not None and meter.lost():
            meter = None               # there may be room by now
        if meter is None:
            if len(self.models) >= MAX_MODELS:
                model = answered = "other"
            else:
                answered = attempt.response_model
            meter = ModelMeter(self.segment, ",".join((
                label("gen_ai_operation_name", "embeddings" if call.format == "embeddings" else "chat"),
                label("gen_ai_system", attempt.provider), label("gen_ai_request_model", model[:MAX_LABEL] or "unknown"),
                label("gen_ai_response_model", (answered or "unknown")[:MAX_LABEL]), place)))
            if len(self.models) < MAX_MODELS:
                self.models[key] = meter
        self.last, self.last_place, self.last_provider, self.last_model = meter, place, attempt.provider, model
        self.last_answered, self.last_format = attempt.response_model, call.format
        return meter
