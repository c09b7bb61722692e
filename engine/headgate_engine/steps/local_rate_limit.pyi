from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step
from headgate_engine.shared.segment import Segment

class LocalRateLimitStep(Step):
    """Takes one token of every bucket; a bucket without one answers with `refusal`.

    limits: (key, max_tokens, tokens_per_fill, fill_interval_ns) per entry, in order.
    """

    def __init__(
        self, segment: Segment, limits: Iterable[tuple[bytes, int, int, int]], refusal: Reply
    ) -> None: ...

class TokenLimitStep(LocalRateLimitStep):
    """localRateLimit by LLM tokens: a request passes while every entry has one left, and is charged when its answer
    has told what it used. The level may reach 0 and never falls below: the request that crosses the limit succeeds.
    """

FREE: frozenset[str]

class PromptTokenStep(LocalRateLimitStep):
    """`tokenize` of a provider: the prompt's tokens are estimated (llm.estimate) and taken from the token limits that
    the request passed, once per request, before the provider is asked; what they have no room for is refused.
    """

    def __init__(self, refusal: Reply) -> None: ...
