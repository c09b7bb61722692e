"""Compiles `localRateLimit` to steps whose counters several replicas share."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.ir.policies import LocalRateLimit
from headgate.policy.shared.limiter import SharedLimiter
from headgate_engine.context.request import Reply
from headgate_engine.shared.segment import Segment
from headgate_engine.steps.local_rate_limit import LocalRateLimitStep
from headgate_engine.steps.shared_limit import SharedLimitStep, SharedTokenStep


def shared_step(
    limits: Iterable[LocalRateLimit], limiter: SharedLimiter, segment: Segment, refusal: Reply, failed: Reply
) -> LocalRateLimitStep:
    """Return the step of some limits, which are all of one type. failed: the reply without a store."""
    buckets = [(limit, limiter.bucket(limit)) for limit in limits]
    kind = SharedTokenStep if any(limit.tokens for limit, _ in buckets) else SharedLimitStep
    exact = limiter.settings.mode == "exact"
    return kind(segment, limiter, [bucket for _, bucket in buckets], exact, refusal, failed)
