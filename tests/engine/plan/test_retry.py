"""Retry plans: numbers and statuses."""

from __future__ import annotations

import pytest

from headgate_engine.plan.retry import RetryPlan


def test_listed_statuses_are_retried_and_no_others() -> None:
    plan = RetryPlan(2, [503, 999, 100], backoff_ns=5)
    assert [status for status in range(-5, 1200) if plan.retries(status)] == [100, 503, 999]
    assert (plan.attempts, plan.backoff_ns, plan.condition, plan.precondition) == (2, 5, None, None)


@pytest.mark.parametrize("attempts", [0, -1, 256])
def test_attempts_out_of_range(attempts: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.255"):
        RetryPlan(attempts)


@pytest.mark.parametrize("code", [0, 99, 1000, -1])
def test_statuses_out_of_range(code: int) -> None:
    with pytest.raises(ValueError, match=r"100\.\.999"):
        RetryPlan(1, [code])


def test_a_negative_back_off() -> None:
    with pytest.raises(ValueError, match="negative"):
        RetryPlan(1, backoff_ns=-1)
