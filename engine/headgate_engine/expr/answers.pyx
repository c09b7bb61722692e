"""The `llm.*` variables of expressions: an LLM request and its response."""

from headgate_engine.context.request cimport RequestContext, TokenUsage
from headgate_engine.expr.nodes cimport ABSENT
from headgate_engine.expr.values cimport Duration
from headgate_engine.llm.attempt cimport LlmAttempt, LlmCall, cost_until_now, per_token_ns
from headgate_engine.llm.prices cimport Cost
from headgate_engine.llm.content_capture cimport CapturedAnswer, prompt_now

# Variables that have a value only at the end of the response: a step that reads one of them waits for the end.
AT_THE_END = frozenset(f"llm.{name}" for name in (
    "inputTokens", "outputTokens", "totalTokens", "reasoningTokens", "cachedInputTokens", "cacheCreationInputTokens",
    "providerInputTokens", "providerTotalTokens", "inputTextTokens", "inputImageTokens", "inputAudioTokens",
    "outputTextTokens", "outputImageTokens", "outputAudioTokens", "responseModel", "serviceTier", "cost", "costRates",
    "countTokens", "completion", "toolCalls"))
# Variables that are read only when an expression names them: they are not members of `llm` as a whole.
BY_NAME = frozenset(("llm.prompt", "llm.completion", "llm.toolCalls"))


def _counted(name):
    """Return a reader of one counter of Usage."""
    def read(RequestContext ctx):
        count = -1 if ctx.usage is None else getattr(ctx.usage, name)
        return count if count >= 0 else ABSENT
    return read


def _input(RequestContext ctx):
    """Return the input tokens, cached ones included; our estimate (if any) until the provider has reported a count."""
    if ctx.usage is not None and ctx.usage.input_tokens >= 0:
        return ctx.usage.input_tokens
    if ctx.llm is not None and (<LlmCall>ctx.llm).estimated > 0:
        return (<LlmCall>ctx.llm).estimated
    return ABSENT


def _total(RequestContext ctx):
    cdef TokenUsage usage = ctx.usage
    if usage is None or usage.input_tokens < 0:
        return ABSENT
    return usage.input_tokens + max(usage.output_tokens, 0)


def _requested_model(RequestContext ctx):
    return ABSENT if ctx.requested_model is None else ctx.requested_model.decode("utf-8", "replace")


def _provider(RequestContext ctx):
    return ABSENT if ctx.provider is None else ctx.provider.decode("utf-8", "replace")


def _response_model(RequestContext ctx):
    model = None if ctx.llm is None else (<LlmCall>ctx.llm).response_model
    return ABSENT if model is None else model.decode("utf-8", "replace")


def _service_tier(RequestContext ctx):
    tier = None if ctx.llm is None else (<LlmCall>ctx.llm).service_tier
    return ABSENT if tier is None else tier.decode("utf-8", "replace")


def _streaming(RequestContext ctx):
    return ABSENT if ctx.llm is None else bool((<LlmCall>ctx.llm).streaming)


def _params(RequestContext ctx):
    if ctx.llm is None:
        return ABSENT
    return (<LlmCall>ctx.llm).params or {}


cdef LlmAttempt last_attempt(RequestContext ctx):
    cdef LlmCall call = <LlmCall>ctx.llm
    if call is None:
        return None
    if call.attempt is not None:
        return call.attempt
    return None if call.attempts is None else <LlmAttempt>call.attempts[len(call.attempts) - 1]


def _first_token(RequestContext ctx):
    cdef LlmAttempt attempt = last_attempt(ctx)
    if attempt is None or not attempt.streaming or not attempt.first_event_ns:
        return ABSENT
    return Duration(attempt.first_event_ns - attempt.started_ns)


def _per_token(RequestContext ctx):
    cdef LlmAttempt attempt = last_attempt(ctx)
    if attempt is None or not attempt.streaming or not attempt.ended_ns or per_token_ns(attempt) < 0:
        return ABSENT
    return Duration(per_token_ns(attempt))


def _cost(RequestContext ctx):
    cdef Cost cost = cost_until_now(ctx)
    return ABSENT if cost is None else cost.dollars()


def _rates(RequestContext ctx):
    cdef Cost cost = cost_until_now(ctx)
    return ABSENT if cost is None else cost.rates.per_million()


def _prompt(RequestContext ctx):
    found = prompt_now(ctx)
    return ABSENT if found is None else found


cdef CapturedAnswer whole_answer(RequestContext ctx):
    """Return the captured response when it has ended, else None."""
    cdef LlmCall call = <LlmCall>ctx.llm
    if call is None or call.answer is None:
        return None
    return <CapturedAnswer>call.answer if call.attempt is None or (<CapturedAnswer>call.answer).ended else None


def _completion(RequestContext ctx):
    answer = whole_answer(ctx)
    return ABSENT if answer is None else answer.completion()


def _tool_calls(RequestContext ctx):
    answer = whole_answer(ctx)
    return ABSENT if answer is None else answer.tool_calls()


def _count_tokens(RequestContext ctx):
    if ctx.llm is None or (<LlmCall>ctx.llm).counted < 0:
        return ABSENT
    return (<LlmCall>ctx.llm).counted


READERS = {
    "llm.prompt": _prompt,
    "llm.completion": _completion,
    "llm.toolCalls": _tool_calls,
    "llm.countTokens": _count_tokens,
    "llm.requestModel": _requested_model,
    "llm.provider": _provider,
    "llm.inputTokens": _input,
    "llm.outputTokens": _counted("output_tokens"),
    "llm.cachedInputTokens": _counted("cached_tokens"),
    "llm.reasoningTokens": _counted("reasoning_tokens"),
    "llm.totalTokens": _total,
    "llm.cacheCreationInputTokens": _counted("cache_write_tokens"),
    "llm.providerInputTokens": _counted("provider_input_tokens"),
    "llm.providerTotalTokens": _counted("provider_total_tokens"),
    "llm.inputTextTokens": _counted("input_text_tokens"),
    "llm.inputImageTokens": _counted("input_image_tokens"),
    "llm.inputAudioTokens": _counted("input_audio_tokens"),
    "llm.outputTextTokens": _counted("output_text_tokens"),
    "llm.outputImageTokens": _counted("output_image_tokens"),
    "llm.outputAudioTokens": _counted("output_audio_tokens"),
    "llm.responseModel": _response_model,
    "llm.serviceTier": _service_tier,
    "llm.streaming": _streaming,
    "llm.params": _params,
    "llm.timeToFirstToken": _first_token,
    "llm.timePerOutputToken": _per_token,
    "llm.cost": _cost,
    "llm.costRates": _rates,
}
