from collections.abc import Iterable

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.leased import LeasedBucket
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep, TokenLimitStep

class SharedLimitStep(LocalRateLimitStep):
    """localRateLimit by requests whose counters several replicas share.

    exact: the store makes each decision. Else the step spends leased tokens, and waits only when there is none.
    failed: the reply without a store, where replicas do not limit by themselves. limiter: asks the store
    (headgate.policy.shared.limiter.SharedLimiter).
    """

    def __init__(
        self, segment: Segment, limiter: object, buckets: Iterable[LeasedBucket], exact: bool, refusal: Reply,
        failed: Reply,
    ) -> None: ...  # fmt: skip
    def verdict_of(self, ctx: RequestContext, told: list[tuple[bool, int, int, int]] | None) -> int:
        """Return the verdict for what decided() gave, or leased tokens."""

class SharedTokenStep(TokenLimitStep):
    """localRateLimit by tokens of models whose counters several replicas share; the same arguments.

    exact: the store is asked before each request. Else an answer that is not older than 100 ms is good enough.
    """

    def __init__(
        self, segment: Segment, limiter: object, buckets: Iterable[LeasedBucket], exact: bool, refusal: Reply,
        failed: Reply,
    ) -> None: ...  # fmt: skip
    def verdict_of(self, ctx: RequestContext, told: bool) -> int:
        """Return the verdict. told: the store has answered for every entry."""

def by_remaining(one: tuple[bool, int, int, int]) -> int:
    """Return how many tokens a bucket has left."""

async def leased(
    step: SharedLimitStep, first: int, told: list[tuple[bool, int, int, int]]
) -> list[tuple[bool, int, int, int]] | None:
    """Spend a token of each bucket from the `first` on, and ask for leases where there is none.

    Return what the buckets told, None without a store.
    """

async def accounts(step: SharedTokenStep) -> bool:
    """Ask for the state of every account. Return whether the store has answered."""
