from collections.abc import Iterable

from headgate_engine.context.request import Reply
from headgate_engine.plan.step import Step
from headgate_engine.shared.segment import Segment

class LocalRateLimitStep(Step):
    """Takes one token from every bucket. If a bucket is empty, the reply is `refusal`.

    limits: (key, max_tokens, tokens_per_fill, fill_interval_ns) per entry, in order.
    """

    def __init__(
        self, segment: Segment, limits: Iterable[tuple[bytes, int, int, int]], refusal: Reply
    ) -> None: ...

class TokenLimitStep(LocalRateLimitStep):
    """localRateLimit by LLM tokens: a request passes if every entry has a token left.

    It is charged when its response reports its usage. The level may reach 0 but not fall below: the request that
    crosses the limit succeeds.
    """

FREE: frozenset[str]

class PromptTokenStep(LocalRateLimitStep):
    """`tokenize` of a provider: limits requests by an estimate of the prompt's tokens (llm.estimate).

    The estimate is taken from the token limits that the request passed, once per request, before the provider is
    called. A request that exceeds a limit is refused.
    """

    def __init__(self, refusal: Reply) -> None: ...
