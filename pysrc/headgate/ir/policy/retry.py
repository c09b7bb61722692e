"""Retry of failed attempts."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBudgetLimits:
    """The limit of retries of one route or model router in one worker.

    Over ten seconds, retries may be up to `percent` of the requests. `least_per_s` retries per second are always
    allowed.
    """

    percent: int = 20
    least_per_s: int = 10


DEFAULT_BUDGET = RetryBudgetLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """The retry policy: up to `attempts` (1..255) retries after the first attempt, `backoff_ms` apart.

    A request is retried if the response status is in `codes`, if `condition` (an expression over the response) holds,
    or if an attempt fails to connect or times out. `precondition` (an expression over the request) decides whether the
    request may be retried at all.
    """

    attempts: int = 1
    codes: tuple[int, ...] = ()
    backoff_ms: int = 0
    precondition: str | None = None
    condition: str | None = None
    budget: RetryBudgetLimits = DEFAULT_BUDGET
