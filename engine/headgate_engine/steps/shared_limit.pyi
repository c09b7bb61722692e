from collections.abc import Awaitable, Iterable
from typing import Protocol

from headgate_engine.context.request import Reply, RequestContext
from headgate_engine.limit.leased import LeasedBucket
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep, TokenLimitStep

class Limiter(Protocol):
    """Asks the store."""

    def want(self, bucket: LeasedBucket) -> None:
        """Ask for a lease, or for the state of an account; nobody waits for it."""
    def asked(self, bucket: LeasedBucket) -> Awaitable[int | None]:
        """Do the same. Gives how many tokens were leased, None if the store did not answer."""
    def decided(self, buckets: tuple[LeasedBucket, ...]) -> Awaitable[list[tuple[bool, int, int, int]] | None]:
        """Take a token of each until one has none. Gives what take_at() of each does, None without an answer."""

class SharedLimitStep(LocalRateLimitStep):
    """localRateLimit by requests whose counters several replicas share.

    exact: the store makes each decision. Else the step spends leased tokens, and waits only when there is none.
    failed: the reply without a store, where replicas do not limit by themselves.
    """

    def __init__(
        self, segment: Segment, limiter: Limiter, buckets: Iterable[LeasedBucket], exact: bool, refusal: Reply,
        failed: Reply,
    ) -> None: ...  # fmt: skip
    def verdict_of(self, ctx: RequestContext, told: list[tuple[bool, int, int, int]] | None) -> int:
        """Return the verdict for what decided() gave, or leased tokens."""

class SharedTokenStep(TokenLimitStep):
    """localRateLimit by tokens of models whose counters several replicas share; the same arguments.

    exact: the store is asked before each request. Else an answer that is not older than 100 ms is good enough.
    """

    def __init__(
        self, segment: Segment, limiter: Limiter, buckets: Iterable[LeasedBucket], exact: bool, refusal: Reply,
        failed: Reply,
    ) -> None: ...  # fmt: skip
    def verdict_of(self, ctx: RequestContext, told: bool) -> int:
        """Return the verdict. told: the store has answered for every entry."""
