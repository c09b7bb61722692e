"""localRateLimit by requests: every entry must have a token; response fields describe the tightest one."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.headers cimport MessageHead
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult, TokenBucket
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.llm.estimate cimport prompt_tokens
from headgate_engine.plan.step cimport CONTINUE, RESPOND, Step
from headgate_engine.shared.counters cimport Counter
from headgate_engine.shared.segment cimport Segment

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t
from libc.string cimport memcmp


# Operations that cost no tokens.
FREE = frozenset(("count_tokens", "gemini_count_tokens"))


cdef bytes digits(int64_t value):
    """Return a non-negative number as decimal digits."""
    cdef char[20] text
    cdef int at = 20
    while True:
        at -= 1
        text[at] = <char>(48 + value % 10)
        value //= 10
        if value == 0:
            return PyBytes_FromStringAndSize(text + at, 20 - at)


cdef tuple decisions(Segment segment, bytes kind):
    """Return the counters of requests that limits of a kind let pass, and refused."""
    return (Counter(segment, b'gw_limit_decisions_total\0limit="%s",decision="passed"' % kind),
            Counter(segment, b'gw_limit_decisions_total\0limit="%s",decision="limited"' % kind))


cdef class LocalRateLimitStep(Step):
    def __init__(self, Segment segment not None, limits, Reply refusal not None):
        """limits: (key, max_tokens, tokens_per_fill, fill_interval_ns) per entry, in order."""
        self.name = "localRateLimit"
        self.buckets = tuple(TokenBucket(segment, *limit) for limit in limits)
        self.refusal = refusal
        self.passed, self.limited = decisions(segment, b"requests")

    cdef int count(self, bint refused) noexcept:
        if self.passed is not None:
            (self.limited if refused else self.passed).bump(1)
        return 0

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
                # Entries that were passed keep their token: a limit counts the requests that it lets pass.
                refused = True
                break
        self.set_headers(ctx, &tightest)
        self.count(refused)
        if refused:
            ctx.reply = self.refusal
            return RESPOND
        return CONTINUE

    cdef int set_headers(self, RequestContext ctx, TakeResult* result) except -1:
        if self.sent_text is None or self.sent_limit != result.limit:
            self.sent_limit, self.sent_text = result.limit, digits(result.limit)
        ctx.set_response_header(b"x-ratelimit-limit", self.sent_text)
        ctx.set_response_header(b"x-ratelimit-remaining", digits(result.remaining))
        ctx.set_response_header(b"x-ratelimit-reset", digits(result.reset_s))
        return 0


cdef class TokenLimitStep(LocalRateLimitStep):
    """localRateLimit by LLM tokens: a request passes if every entry has a token left.

    It is charged when its response reports its usage. The level may reach 0 but not fall below: the request that
    crosses the limit succeeds.
    """

    def __init__(self, Segment segment not None, limits, Reply refusal not None):
        LocalRateLimitStep.__init__(self, segment, limits, refusal)
        self.passed, self.limited = decisions(segment, b"tokens")

    cdef int run(self, RequestContext ctx) except -1:
        cdef TakeResult result, tightest
        cdef TokenBucket bucket
        cdef bint first = True
        now = monotonic_ns()
        for bucket in self.buckets:
            bucket.look(1, now, &result)
            if first or result.remaining < tightest.remaining:
                tightest = result
                first = False
            # Requests that count a prompt's tokens are free.
            if not result.allowed and not counts_tokens(ctx.head):
                self.set_headers(ctx, &result)
                self.count(True)
                ctx.reply = self.refusal
                return RESPOND
        self.count(False)
        # A limit on requests that has been told already stands.
        if not first and not limit_sent_already(ctx):
            self.set_headers(ctx, &tightest)
        ctx.token_buckets = self.buckets if ctx.token_buckets is None else ctx.token_buckets + self.buckets
        return CONTINUE


cdef bint limit_sent_already(RequestContext ctx) except -1:
    """Return whether the response will have rate-limit headers."""
    cdef bytes name
    if ctx.response_headers is not None:
        for name, _ in ctx.response_headers:
            if name.startswith(b"x-ratelimit-"):
                return True
    return False


cdef bint counts_tokens(MessageHead head) noexcept:
    cdef const char* path = head.data + head.target_off
    cdef Py_ssize_t n = head.path_len
    return (n >= 13 and memcmp(path + n - 13, b"/count_tokens", 13) == 0) or (
        n >= 12 and memcmp(path + n - 12, b":countTokens", 12) == 0)


cdef class PromptTokenStep(LocalRateLimitStep):
    """`tokenize` of a provider: limits requests by an estimate of the prompt's tokens (llm.estimate).

    The estimate is taken from the token limits that the request passed, once per request, before the provider is
    called. A request that exceeds a limit is refused.
    """

    def __init__(self, Reply refusal not None):
        self.name = "localRateLimit"
        self.buckets = ()
        self.refusal = refusal

    cdef int run(self, RequestContext ctx) except -1:
        cdef LlmCall call = <LlmCall>ctx.llm
        cdef TakeResult result, tightest
        cdef TokenBucket bucket
        cdef int taken = 0
        if call is None or call.estimated >= 0 or call.format in FREE:
            return CONTINUE
        call.estimated = prompt_tokens(call.format, ctx.body) if call.prompt_estimate < 0 else call.prompt_estimate
        if ctx.token_buckets is None or call.estimated <= 0:
            return CONTINUE
        now = monotonic_ns()
        for bucket in ctx.token_buckets:
            bucket.take(call.estimated, now, &result)
            if not taken or not result.allowed or result.remaining < tightest.remaining:
                tightest = result
            if not result.allowed:
                for earlier in ctx.token_buckets[:taken]:
                    (<TokenBucket>earlier).settle(call.estimated, now)
                self.retell(ctx, &tightest)
                ctx.reply = self.refusal
                return RESPOND
            taken += 1
        call.taken = call.estimated
        self.retell(ctx, &tightest)
        return CONTINUE

    cdef int retell(self, RequestContext ctx, TakeResult* result) except -1:
        """Update the response fields to the remaining tokens after the estimate."""
        if ctx.response_headers is not None:
            ctx.response_headers = [pair for pair in ctx.response_headers if not pair[0].startswith(b"x-ratelimit-")]
        return self.set_headers(ctx, result)


cdef int settle_tokens(RequestContext ctx) except -1:
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef TokenBucket bucket
    cdef int64_t used = 0
    if call.total_usage is not None:
        used = max(call.total_usage.input_tokens, 0) + max(call.total_usage.output_tokens, 0)
    elif call.charged:
        used = call.taken                 # no usage was reported: the estimate is final
    used -= call.taken
    if used:
        now = monotonic_ns()
        for bucket in ctx.token_buckets:
            bucket.settle(-used, now)
    return 0
