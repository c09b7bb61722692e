"""Retry of failed attempts."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryBudget:
    """Retries of one route or model router, in one worker and over ten seconds, may be `percent` of its requests, and
    always `least_per_s` each second.
    """

    percent: int = 20
    least_per_s: int = 10


DEFAULT_BUDGET = RetryBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """`attempts` 1..255 tries after the first one, `backoff_ms` apart.

    A response is tried again when its status is in `codes` or `condition` (an expression over the response)
    holds; failed connections and late answers always are. `precondition` (over the request) decides whether
    there are retries at all.
    """

    attempts: int = 1
    codes: tuple[int, ...] = ()
    backoff_ms: int = 0
    precondition: str | None = None
    condition: str | None = None
    budget: RetryBudget = DEFAULT_BUDGET
