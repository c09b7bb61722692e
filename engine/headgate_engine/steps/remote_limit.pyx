"""remoteRateLimit by LLM tokens: services decide before a model is called, and then get the usage."""

from headgate_engine.context.request cimport RequestContext
from headgate_engine.llm.attempt cimport LlmCall
from headgate_engine.plan.step cimport CONTINUE, AsyncStep

from libc.stdint cimport int64_t

from headgate_engine.steps.local_rate_limit import FREE


cdef class RemoteTokensStep(AsyncStep):
    def __init__(self):
        AsyncStep.__init__(self, "remoteRateLimit", asked)

    cdef int run(self, RequestContext ctx) except -1:
        cdef LlmCall call
        if ctx.remote_limits is None or ctx.remote_limits_asked or ctx.llm is None:
            return CONTINUE
        call = <LlmCall>ctx.llm
        if call.format in FREE:
            return CONTINUE
        ctx.remote_limits_asked = True
        return AsyncStep.run(self, ctx)


async def asked(RequestContext ctx):
    cdef LlmCall call = <LlmCall>ctx.llm
    for limit in ctx.remote_limits:
        reply = await limit.check(ctx, max(call.estimated, 0))
        if reply is not None:
            # What the others have counted stays: they are not told of requests that a limit refuses.
            ctx.remote_limits = None
            return reply
    return None


cdef int settle_remote(RequestContext ctx) except -1:
    cdef LlmCall call = <LlmCall>ctx.llm
    cdef tuple limits = ctx.remote_limits
    cdef int64_t used
    if not ctx.remote_limits_asked or call.total_usage is None:
        return 0
    ctx.remote_limits = None
    used = max(call.total_usage.input_tokens, 0) + max(call.total_usage.output_tokens, 0)
    for limit in limits:
        limit.settle(ctx, used, max(call.estimated, 0))
    return 0
