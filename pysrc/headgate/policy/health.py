"""Compiles `health` to the plan that determines the health of endpoints."""

from __future__ import annotations

from headgate.ir.policy.health import Health
from headgate.ir.policy.retry import RetryPolicy
from headgate.policy.environment import Environment
from headgate_engine.link.endpoints import HealthPlan

MS_PER_S = 1000


def compile_health(
    health: Health, retry: RetryPolicy | None, env: Environment | None, *, limited: bool = False
) -> HealthPlan:
    """Return the plan. An ejection without a duration of its own lasts as long as the pause between the route's
    retries.

    `limited`: a response with status 429 counts as a failure. `env`: needed for an expression.
    """
    unhealthy = None if health.unhealthy is None or env is None else env.program(health.unhealthy, "answer")
    backoff = retry.backoff_ms / MS_PER_S if retry is not None and retry.backoff_ms else None
    eviction = health.eviction
    if eviction is None:
        return HealthPlan(unhealthy, backoff=backoff, limited=limited)
    return HealthPlan(
        unhealthy,
        evicts=True,
        duration=None if eviction.duration_ms is None else eviction.duration_ms / MS_PER_S,
        backoff=backoff,
        consecutive=eviction.consecutive,
        threshold=eviction.threshold,
        restore=eviction.restore,
        limited=limited,
    )
