"""localRateLimit by requests: every entry must have a token; the tightest one is told to the client."""

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.link.timers cimport monotonic_ns
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.shared.segment cimport Segment

from libc.stdint cimport int64_t


cdef class LocalRateLimitStep(Step):
    def __init__(self, Segment segment, limits, Reply refusal):
        """limits: (key, max_tokens, tokens_per_fill, fill_interval_ns) per entry, in order."""
        self.name = "localRateLimit"
        self.buckets = tuple(TokenBucket(segment, *limit) for limit in limits)
        self.refusal = refusal

    cdef int run(self, RequestContext ctx) except -1:
        cdef TakeResult result, tightest
        cdef TokenBucket bucket
        cdef bint first = True
        cdef bint refused = False
        now = monotonic_ns()
        for bucket in self.buckets:
            bucket.take(1, now, &result)
            if first or not result.allowed or result.remaining < tightest.remaining:
                tightest = result
                first = False
            if not result.allowed:
                # Entries already passed keep what they took, as the reference does.
                refused = True
                break
        self.tell(ctx, &tightest)
        if refused:
            ctx.reply = self.refusal
            return RESPOND
        return CONTINUE

    cdef int tell(self, RequestContext ctx, TakeResult* result) except -1:
        ctx.set_response_header(b"x-ratelimit-limit", b"%d" % result.limit)
        ctx.set_response_header(b"x-ratelimit-remaining", b"%d" % result.remaining)
        ctx.set_response_header(b"x-ratelimit-reset", b"%d" % result.reset_s)
        return 0


cdef class TokenLimitStep(LocalRateLimitStep):
    """localRateLimit by LLM tokens: a request passes while every entry has one left, and is charged when its answer
    has told what it used. The level may reach 0 and never falls below: the request that crosses the limit succeeds.
    """

    cdef int run(self, RequestContext ctx) except -1:
        cdef TakeResult result
        cdef TokenBucket bucket
        now = monotonic_ns()
        for bucket in self.buckets:
            bucket.look(1, now, &result)
            if not result.allowed:
                self.tell(ctx, &result)
                ctx.reply = self.refusal
                return RESPOND
        if len(self.buckets) and not ctx.response_headers:
            self.tell(ctx, &result)
        ctx.token_buckets = self.buckets if ctx.token_buckets is None else ctx.token_buckets + self.buckets
        return CONTINUE


cdef int settle_tokens(RequestContext ctx) except -1:
    cdef TokenBucket bucket
    cdef int64_t used = 0
    if ctx.usage.input_tokens > 0:
        used += ctx.usage.input_tokens
    if ctx.usage.output_tokens > 0:
        used += ctx.usage.output_tokens
    if used:
        now = monotonic_ns()
        for bucket in ctx.token_buckets:
            bucket.settle(-used, now)
    return 0
