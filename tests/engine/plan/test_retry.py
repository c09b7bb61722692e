"""Retry plans: numbers and statuses."""

from __future__ import annotations

import pytest

from headgate_engine.plan.retry import RetryBudget, RetryPlan


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


SECOND = 1_000_000_000


def test_a_share_of_the_requests_of_ten_seconds_may_be_retries() -> None:
    budget = RetryBudget(0.2, 0)
    now = 5 * SECOND
    assert not budget.retry(now)
    for at in range(50):
        budget.request(now + at * SECOND // 10)
    now += 5 * SECOND
    assert [budget.retry(now) for _ in range(12)] == [True] * 10 + [False] * 2
    # What is older than ten seconds counts no more, neither requests nor retries.
    now += 7 * SECOND
    assert not budget.retry(now)
    for _ in range(5):
        budget.request(now + 4 * SECOND)
    assert [budget.retry(now + 4 * SECOND) for _ in range(2)] == [True, False]


def test_some_retries_are_always_free() -> None:
    budget = RetryBudget(0.2, 1)
    now = 1000 * SECOND
    assert [budget.retry(now) for _ in range(11)] == [True] * 10 + [False]
    for _ in range(60):
        budget.request(now)
    # The larger of both counts, not their sum.
    assert [budget.retry(now) for _ in range(3)] == [True, True, False]
    assert budget.retry(now + 10 * SECOND)


@pytest.mark.parametrize(("share", "least"), [(-0.1, 1), (10.1, 1), (0.2, -1), (0.2, 10_001)])
def test_budgets_out_of_range(share: float, least: int) -> None:
    with pytest.raises(ValueError, match="retry budget"):
        RetryBudget(share, least)
