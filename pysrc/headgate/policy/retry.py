"""Compiles `retry` to a plan of the engine."""

from __future__ import annotations

from headgate.ir.policy.retry import DEFAULT_BUDGET, RetryBudgetLimits, RetryPolicy
from headgate.policy.environment import Environment
from headgate_engine.plan.retry import RetryBudget as EngineBudget
from headgate_engine.plan.retry import RetryPlan

NS_PER_MS = 1_000_000


def compile_budget(budget: RetryBudgetLimits = DEFAULT_BUDGET) -> EngineBudget:
    """Return a new, unused budget."""
    return EngineBudget(budget.percent / 100, budget.least_per_s)


def compile_retry(retry: RetryPolicy, env: Environment) -> RetryPlan:
    """Return the plan that the exchange consults after each attempt."""
    return RetryPlan(
        retry.attempts,
        retry.codes,
        backoff_ns=retry.backoff_ms * NS_PER_MS,
        condition=None if retry.condition is None else env.program(retry.condition, "answer"),
        precondition=None if retry.precondition is None else env.program(retry.precondition, "route"),
        budget=compile_budget(retry.budget),
    )
