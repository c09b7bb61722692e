"""localRateLimit whose counters several replicas share. Steps spend what is leased; a limiter in Python asks the store."""

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport Reply, RequestContext
from headgate_engine.limit.bucket cimport TakeResult
from headgate_engine.limit.leased cimport LeasedBucket
from headgate_engine.plan.step cimport CONTINUE, RESPOND, SUSPEND
from headgate_engine.shared.segment cimport Segment
from headgate_engine.steps.local_rate_limit cimport TokenLimitStep, decisions

from libc.stdint cimport int64_t

# How old the state of an account may be before it is asked for again, and before a request waits for the answer.
cdef int64_t STALE_NS = 50 * 1000000
cdef int64_t OLD_NS = 2000 * 1000000


cdef class SharedLimitStep(LocalRateLimitStep):
    def __init__(self, Segment segment not None, limiter not None, buckets, bint exact, Reply refusal not None,
                 Reply failed not None):
        self.name = "localRateLimit"
        self.buckets = tuple(buckets)
        for bucket in self.buckets:
            if not isinstance(bucket, LeasedBucket):
                raise TypeError("leased buckets are wanted")
        if not self.buckets:
            raise ValueError("at least one bucket is wanted")
        self.state = (<LeasedBucket>self.buckets[0]).state
        self.limiter, self.exact, self.refusal, self.failed = limiter, exact, refusal, failed
        self.passed, self.limited = decisions(segment, b"requests")

    cdef int run(self, RequestContext ctx) except -1:
        cdef TakeResult result, tightest
        cdef LeasedBucket bucket
        cdef list told
        cdef Py_ssize_t number = 0
        cdef bint down = self.state.down
        if self.exact and not down:
            return self.suspend(ctx, None)
        now = monotonic_ns()
        for bucket in self.buckets:
            bucket.take(1, now, &result)
            if number == 0 or not result.allowed or result.remaining < tightest.remaining:
                tightest = result
            if not result.allowed:
                if down and not self.state.local:
                    ctx.reply = self.failed
                    return RESPOND
                if not down and not bucket.empty(now):
                    # What the entries before this one gave stays spent; their results go along.
                    told = [] if number == 0 else [(True, tightest.limit, tightest.remaining, tightest.reset_s)]
                    return self.suspend(ctx, [number, told])
                break
            if not down and not bucket.asking and bucket.low(now):
                self.limiter.want(bucket)
            number += 1
        self.set_headers(ctx, &tightest)
        self.count(not tightest.allowed)
        if not tightest.allowed:
            ctx.reply = self.refusal
            return RESPOND
        return CONTINUE

    cdef int suspend(self, RequestContext ctx, list told) except -1:
        if told is None:
            found = self.limiter.decided(self.buckets)
        else:
            found = leased(self, told[0], told[1])
        ctx.exchange.wait_for(self.name, found, self.verdict_of)
        return SUSPEND

    def verdict_of(self, RequestContext ctx, told):
        """Return the verdict for what decided() gave, or leased tokens."""
        cdef TakeResult tightest
        if told is None:
            if not self.state.local:
                ctx.reply = self.failed
                return RESPOND
            told = alone(self.buckets)
        limited = [one for one in told if not one[0]]
        tightest.allowed, tightest.limit, tightest.remaining, tightest.reset_s = (
            limited[0] if limited else min(told, key=by_remaining))
        self.set_headers(ctx, &tightest)
        self.count(not tightest.allowed)
        if not tightest.allowed:
            ctx.reply = self.refusal
            return RESPOND
        return CONTINUE


def by_remaining(tuple one not None):
    return one[2]


cdef list alone(tuple buckets):
    """Take a token of the limit of this replica alone, of each bucket until one has none."""
    cdef LeasedBucket bucket
    found = []
    now = monotonic_ns()
    for bucket in buckets:
        found.append(bucket.alone.take_at(1, now))
        if not found[-1][0]:
            break
    return found


async def leased(SharedLimitStep step, Py_ssize_t first, list told):
    """Spend a token of each bucket from the `first` on, and ask for leases where there is none.

    Return what the buckets told, None without a store.
    """
    cdef TakeResult result
    cdef LeasedBucket bucket
    for bucket in step.buckets[first:]:
        while True:
            now = monotonic_ns()
            bucket.take(1, now, &result)
            if result.allowed or bucket.empty(now):
                break
            granted = await step.limiter.asked(bucket)
            if granted is None:
                return None
            if granted == 0:
                now = monotonic_ns()
                bucket.take(1, now, &result)
                break
        told.append((bool(result.allowed), result.limit, result.remaining, result.reset_s))
        if not result.allowed:
            break
    return told


cdef class SharedTokenStep(TokenLimitStep):
    def __init__(self, Segment segment not None, limiter not None, buckets, bint exact, Reply refusal not None,
                 Reply failed not None):
        self.name = "localRateLimit"
        self.buckets = tuple(buckets)
        for bucket in self.buckets:
            if not isinstance(bucket, LeasedBucket):
                raise TypeError("leased buckets are wanted")
        if not self.buckets:
            raise ValueError("at least one bucket is wanted")
        self.state = (<LeasedBucket>self.buckets[0]).state
        self.limiter, self.exact, self.refusal, self.failed = limiter, exact, refusal, failed
        self.passed, self.limited = decisions(segment, b"tokens")

    cdef int run(self, RequestContext ctx) except -1:
        cdef LeasedBucket bucket
        if self.state.down:
            if not self.state.local:
                ctx.reply = self.failed
                return RESPOND
            return TokenLimitStep.run(self, ctx)
        now = monotonic_ns()
        for bucket in self.buckets:
            if self.exact or bucket.unknown(now, OLD_NS):
                ctx.exchange.wait_for(self.name, accounts(self), self.verdict_of)
                return SUSPEND
            if not bucket.asking and bucket.unknown(now, STALE_NS):
                self.limiter.want(bucket)
        return TokenLimitStep.run(self, ctx)

    def verdict_of(self, RequestContext ctx, told):
        """Return the verdict. told: the store has answered for every entry."""
        if not told and not self.state.local:
            ctx.reply = self.failed
            return RESPOND
        return TokenLimitStep.run(self, ctx)


async def accounts(SharedTokenStep step):
    """Ask for the state of every account. Return whether the store has answered."""
    for bucket in step.buckets:
        if await step.limiter.asked(bucket) is None:
            return False
    return True
