"""localRateLimit by requests: every entry must have a token; the tightest one is told to the client."""

from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.link.timers cimport monotonic_ns
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.shared.segment cimport Segment


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
        ctx.set_response_header(b"x-ratelimit-limit", b"%d" % tightest.limit)
        ctx.set_response_header(b"x-ratelimit-remaining", b"%d" % (0 if refused else tightest.remaining))
        ctx.set_response_header(b"x-ratelimit-reset", b"%d" % tightest.reset_s)
        if refused:
            ctx.reply = self.refusal
            return RESPOND
        return CONTINUE
