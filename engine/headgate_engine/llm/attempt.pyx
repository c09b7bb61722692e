"""Attempts at providers; see attempt.pxd."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.prices cimport Cost, PriceList

from libc.stdint cimport int64_t

# answered: a whole 2xx answer. refused: any other answer. failed: no answer. timeout: none in time. broken: a stream that
# was cut, stalled or not in its format. cancelled: the client went away.
OUTCOMES = ("answered", "refused", "failed", "timeout", "broken", "cancelled")
# provider: it counted. estimated: by the gateway, before it asked (`tokenize`). none: nobody did.
SOURCES = ("provider", "estimated", "none")
NS_PER_S = 1e9
# Bytes of a model's name that are told.
cdef Py_ssize_t LONGEST_MODEL = 256


cdef class LlmAttempt:
    def record(self):
        """All of it as a map, for the trace and the log."""
        cdef TokenUsage usage = self.usage
        found = {"provider": self.provider, "model": self.model, "responseModel": self.response_model,
                 "clientFormat": self.client_format, "upstreamFormat": self.upstream_format,
                 "streaming": bool(self.streaming), "status": self.status or None, "outcome": self.outcome,
                 "usageSource": self.usage_source, "priceVersion": self.price_version,
                 "cost": None if self.cost is None else self.cost.dollars()["total"]}
        if usage is not None:
            found["usage"] = {name: value for name, value in (
                ("inputTokens", usage.input_tokens), ("outputTokens", usage.output_tokens),
                ("cachedInputTokens", usage.cached_tokens), ("cacheCreationInputTokens", usage.cache_write_tokens),
                ("reasoningTokens", usage.reasoning_tokens)) if value >= 0}
        return {name: value for name, value in found.items() if value is not None}


cdef class LlmCall:
    def __cinit__(self):
        self.estimated = self.counted = self.prompt_estimate = -1

    @property
    def translation(self):
        """What translates between the client's format and the provider's; None where they are the same."""
        return None if self.format_route is None else self.format_route.translation

    @property
    def history(self):
        """What makes turns of other vendors fit for a provider that speaks the client's format; None: nothing does."""
        return None if self.format_route is None else self.format_route.history

    @property
    def adapt(self):
        """adapt(body, streaming): the body in the provider's dialect of its format; None: it has none."""
        return None if self.format_route is None else self.format_route.adapt

    @property
    def edits_final(self):
        """Whether expressions edit what goes to the provider, in its format."""
        edits = None if self.target is None else self.target.edits
        return edits is not None and len(edits.final) > 0

    cdef int begin(self, RequestContext ctx) except -1:
        """An attempt starts; target, format_route and model are set."""
        cdef LlmAttempt attempt = LlmAttempt.__new__(LlmAttempt)
        attempt.provider = ctx.provider.decode()
        attempt.client_format = self.format
        attempt.upstream_format = self.format_route.upstream
        attempt.model = self.model
        attempt.streaming = self.streaming
        attempt.outcome = "failed"
        self.attempt = attempt
        self.translation_state = None
        self.translated = self.adapted = self.final_document = None
        self.dropped = self.unsupported = None
        self.response_model = self.service_tier = None
        self.sent = self.answer = self.usage_parts = None
        ctx.usage = None
        return 0

    cdef int note(self, str outcome) except -1:
        """Sets the outcome of the attempt; the last call counts."""
        if self.attempt is not None:
            self.attempt.outcome = outcome
        return 0

    cdef int answered(self, int status) except -1:
        """The head of the provider's answer has come."""
        if self.attempt is not None:
            self.attempt.status = status
        return self.note("answered" if status < 300 else "refused")


cdef inline bint good(int status) noexcept:
    return 200 <= status < 300 or status == 101


cdef Cost priced(RequestContext ctx, LlmCall call, bint counted):
    """What the attempt costs; None where a price is missing, of one of its calls too."""
    cdef PriceList prices = <PriceList>call.prices
    cdef Cost total, one
    if call.usage_parts is None:
        return prices.price(ctx.provider, call.response_model, ctx.requested_model, ctx.usage, counted)
    total = Cost.__new__(Cost)
    for usage in call.usage_parts:
        one = prices.price(ctx.provider, call.response_model, ctx.requested_model, <TokenUsage>usage, counted)
        if one is None:
            return None
        total.add(one)
        counted = False                  # one request is one look-up
    return total


cdef Cost cost_until_now(RequestContext ctx):
    cdef LlmCall call = <LlmCall>ctx.llm
    if call is None or call.prices is None:
        return None
    if call.attempt is None:
        return call.cost
    return None if ctx.usage is None else priced(ctx, call, False)


cdef int end_attempt(RequestContext ctx) except -1:
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef LlmAttempt attempt = call.attempt
    if attempt is None:
        return 0
    attempt.ended_ns = monotonic_ns()
    if call.response_model is not None:
        attempt.response_model = call.response_model[:LONGEST_MODEL].decode("utf-8", "replace")
    call.charged = call.charged or good(attempt.status)
    attempt.dropped = call.dropped
    attempt.usage_source = "none"
    if ctx.usage is not None:
        attempt.usage_source = "provider"
        attempt.usage = ctx.usage
        if call.total_usage is None:
            call.total_usage = ctx.usage
        else:
            call.total_usage = sum_of(call.total_usage, ctx.usage)
        if call.prices is not None:
            _price(ctx, call, attempt)
    elif call.estimated > 0 and good(attempt.status):
        attempt.usage_source = "estimated"
        attempt.usage = TokenUsage(call.estimated)
    call.attempt = None
    if call.attempts is None:
        call.attempts = []
    call.attempts.append(attempt)
    if ctx.trace is not None:
        ctx.trace.llm_attempt_ended(attempt)
    return 0


cdef TokenUsage sum_of(TokenUsage one, TokenUsage other):
    cdef TokenUsage found = TokenUsage.__new__(TokenUsage)
    found.add(one)
    found.add(other)
    return found


cdef int _price(RequestContext ctx, LlmCall call, LlmAttempt attempt) except -1:
    cdef Cost both
    attempt.price_version = (<PriceList>call.prices).version
    attempt.cost = priced(ctx, call, True)
    if call.cost is None:
        call.cost = attempt.cost
    elif attempt.cost is not None:
        both = Cost.__new__(Cost)
        both.add(call.cost)
        both.add(attempt.cost)
        call.cost = both
    return 0


cdef int end_call(RequestContext ctx) except -1:
    cdef LlmCall call = <LlmCall>ctx.llm
    end_attempt(ctx)
    ctx.usage = call.total_usage
    if ctx.usage is None and call.estimated > 0 and call.charged:
        ctx.usage = TokenUsage(call.estimated)
    if call.attempts is not None:
        _tell(ctx, call, <LlmAttempt>call.attempts[len(call.attempts) - 1])
    return 0


# Settings of a request by their log fields.
PARAM_FIELDS = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "encoding_format": "gen_ai.request.encoding_formats",
    "dimensions": "gen_ai.embeddings.dimension.count",
}


cdef int _tell(RequestContext ctx, LlmCall call, LlmAttempt attempt) except -1:
    """The fields of the request's log line that not every request has. `attempt`: the last one."""
    cdef TokenUsage usage = ctx.usage
    cdef list found = [] if ctx.log_fields is None else ctx.log_fields
    if attempt.response_model is not None:
        found.append(("gen_ai.response.model", attempt.response_model))
    if usage is not None:
        if usage.cache_write_tokens >= 0:
            found.append(("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_tokens))
        if usage.output_image_tokens >= 0:
            found.append(("gen_ai.usage.output_image_tokens", usage.output_image_tokens))
        if usage.input_audio_tokens >= 0:
            found.append(("gen_ai.usage.input_audio_tokens", usage.input_audio_tokens))
        if usage.output_audio_tokens >= 0:
            found.append(("gen_ai.usage.output_audio_tokens", usage.output_audio_tokens))
    if call.cost is not None:
        found.append(("gw.ai.usage.cost.total", call.cost.total / 1e12))
    if attempt.streaming and attempt.first_event_ns:
        found.append(("gw.ai.time_to_first_token", (attempt.first_event_ns - attempt.started_ns) / NS_PER_S))
        if per_token_ns(attempt) >= 0:
            found.append(("gw.ai.time_per_output_token", per_token_ns(attempt) / NS_PER_S))
    if attempt.usage_source != "provider" and good(attempt.status):
        found.append(("gw.ai.usage.source", attempt.usage_source))
    if call.params is not None:
        for name, value in call.params.items():
            found.append((PARAM_FIELDS[name], value))
    if found:
        ctx.log_fields = found
    return 0


cdef int64_t per_token_ns(LlmAttempt attempt) noexcept:
    """The time per token of a stream after the first, -1 if unknown."""
    if attempt.first_event_ns == 0 or attempt.usage is None or attempt.usage.output_tokens <= 0:
        return -1
    return (attempt.ended_ns - attempt.first_event_ns) // attempt.usage.output_tokens
