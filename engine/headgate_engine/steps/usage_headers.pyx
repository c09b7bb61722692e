"""usageHeaders; see usage_headers.pxd.

The head of a whole answer waits for its body (plan.plans.ResponseHold), so its fields tell all of it. The head of a stream has
gone when that is known: its fields follow as trailers (RFC 9110, section 6.5), which link.tapped asks for.
"""

from libc.stdint cimport int64_t

from headgate_engine.clock cimport monotonic_ns
from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall, cost_until_now
from headgate_engine.llm.prices cimport Cost
from headgate_engine.plan.step cimport CONTINUE, Step

from headgate_engine.plan.trailers import TRAILERS

PREFIX = b"x-headgate-"
cdef int64_t NS_PER_US = 1000


cdef bytes dollars(int64_t picos):
    """An amount with all of its decimals, without zeros at the end."""
    whole, rest = divmod(picos, 10 ** 12)
    fraction = f"{rest:012d}".rstrip("0")
    return f"{whole}.{fraction.ljust(2, '0')}".encode()


cdef bytes milliseconds(int64_t ns):
    cdef int64_t us = max(ns, 0) // NS_PER_US
    return b"%d.%03d" % (us // 1000, us % 1000)


cdef class UsageHeadersStep(Step):
    def __init__(self, bint cost, bint tokens, bint overhead, bint generation):
        self.name = "usageHeaders"
        self.cost, self.tokens, self.overhead, self.generation = cost, tokens, overhead, generation

    cdef int run(self, RequestContext ctx) except -1:
        cdef LlmCall call
        if ctx.llm is None:
            return CONTINUE
        call = <LlmCall?>ctx.llm
        if call.streaming and ctx.response_body is None and 200 <= ctx.response.status < 300:
            ctx.dynamic = {**(ctx.dynamic or {}), TRAILERS: self}
            return CONTINUE
        for name, value in self.fields(ctx):
            ctx.set_response_header(name, value)
        return CONTINUE

    def fields(self, RequestContext ctx not None):
        """Return the fields, by what is known now."""
        cdef LlmCall call = <LlmCall?>ctx.llm
        cdef LlmAttempt attempt
        cdef TokenUsage usage = TokenUsage.__new__(TokenUsage)
        cdef Cost cost
        cdef int64_t now = monotonic_ns()
        cdef int64_t asked = 0
        cdef int64_t last = 0
        cdef int64_t picos = 0
        cdef bint priced = False
        for attempt in call.attempts or ():
            if attempt.started_ns:
                last = attempt.ended_ns - attempt.started_ns
                asked += last
        if call.attempt is not None and call.attempt.started_ns:
            last = now - call.attempt.started_ns
            asked += last
        found = []
        if self.cost:
            if call.cost is not None:
                picos, priced = call.cost.total, True
            if call.attempt is not None:
                cost = cost_until_now(ctx)
                if cost is not None:
                    picos, priced = picos + cost.total, True
            if priced:
                found.append((PREFIX + b"cost", dollars(picos)))
        if self.tokens and (call.total_usage is not None or ctx.usage is not None):
            if call.total_usage is not None:
                usage.add(call.total_usage)
            if call.attempt is not None and ctx.usage is not None:
                usage.add(ctx.usage)
            for name, count in ((b"input-tokens", usage.input_tokens), (b"output-tokens", usage.output_tokens)):
                if count >= 0:
                    found.append((PREFIX + name, b"%d" % count))
        if self.overhead and ctx.started_ns:
            found.append((PREFIX + b"overhead-ms", milliseconds(now - ctx.started_ns - asked)))
        if self.generation and last:
            found.append((PREFIX + b"generation-ms", milliseconds(last)))
        return found
