"""Attempts at providers; see attempt.pxd."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.link.timers cimport monotonic_ns

# answered: a whole 2xx answer. refused: any other answer. failed: no answer. timeout: none in time. broken: a stream that
# was cut, stalled or not in its format. cancelled: the client went away.
OUTCOMES = ("answered", "refused", "failed", "timeout", "broken", "cancelled")


cdef class LlmAttempt:
    pass


cdef class LlmCall:
    cdef int begin(self, RequestContext ctx) except -1:
        """An attempt starts; target, lane and model are set."""
        cdef LlmAttempt attempt = LlmAttempt.__new__(LlmAttempt)
        attempt.provider = ctx.provider.decode()
        attempt.client_format = self.format
        attempt.upstream_format = self.lane.upstream
        attempt.model = self.model
        attempt.streaming = self.streaming
        attempt.outcome = "failed"
        attempt.started_ns = monotonic_ns()
        self.attempt = attempt
        self.asked = None
        self.response_model = None
        return 0

    cdef int note(self, str outcome) except -1:
        """How the attempt stands; the last note counts."""
        if self.attempt is not None:
            self.attempt.outcome = outcome
        return 0


cdef int _tell(RequestContext ctx, str key, value) except -1:
    """A field of the request's log line; that of a later attempt stands."""
    if ctx.log_fields is None:
        ctx.log_fields = []
    else:
        ctx.log_fields = [pair for pair in ctx.log_fields if pair[0] != key]
    ctx.log_fields.append((key, value))
    return 0


cdef int end_attempt(RequestContext ctx) except -1:
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef LlmAttempt attempt = call.attempt
    if attempt is None:
        return 0
    call.attempt = None
    attempt.ended_ns = monotonic_ns()
    attempt.usage = ctx.usage
    if ctx.response is not None and attempt.status == 0:
        attempt.status = ctx.response.status
    if call.attempts is None:
        call.attempts = []
    call.attempts.append(attempt)
    if call.response_model is not None:
        _tell(ctx, "gen_ai.response.model", call.response_model.decode("utf-8", "replace"))
    if attempt.usage is not None and attempt.usage.cache_write_tokens >= 0:
        _tell(ctx, "gen_ai.usage.cache_creation.input_tokens", attempt.usage.cache_write_tokens)
    if attempt.streaming and attempt.first_event_ns:
        _tell(ctx, "gw.ai.time_to_first_token", (attempt.first_event_ns - attempt.started_ns) / 1e9)
    return 0
