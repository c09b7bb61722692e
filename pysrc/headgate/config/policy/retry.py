"""`retry` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.errors import Problem
from headgate.ir.policy.retry import DEFAULT_BUDGET, RetryBudgetLimits, RetryPolicy

LEAST_STATUS, MOST_STATUS = 100, 999


def parse(context: Context, record: Record) -> RetryPolicy:
    """Return the policy; statuses that no response can have are reported."""
    codes = tuple(sorted(set(record.get("codes") or ())))
    for code in codes:
        if not LEAST_STATUS <= code <= MOST_STATUS:
            message = f"status {code} is not in {LEAST_STATUS}..{MOST_STATUS}"
            context.fault(Problem.VALUE, record, "codes", message)
    return RetryPolicy(
        attempts=record.get("attempts", 1),
        codes=codes,
        backoff_ms=record.get("backoff") or 0,
        precondition=checked(context, record, "precondition", "route"),
        condition=checked(context, record, "condition", "answer"),
        budget=_budget(record.get("budget")),
    )


def _budget(record: Record | None) -> RetryBudgetLimits:
    if record is None:
        return DEFAULT_BUDGET
    return RetryBudgetLimits(
        percent=record.get("percent", DEFAULT_BUDGET.percent),
        least_per_s=record.get("minPerSecond", DEFAULT_BUDGET.least_per_s),
    )


def dump(retry: RetryPolicy) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {"attempts": retry.attempts, "codes": list(retry.codes)}
    if retry.backoff_ms:
        found["backoff"] = f"{retry.backoff_ms}ms"
    for name in ("precondition", "condition"):
        expression = getattr(retry, name)
        if expression is not None:
            found[name] = expression
    if retry.budget != DEFAULT_BUDGET:
        found["budget"] = {"percent": retry.budget.percent, "minPerSecond": retry.budget.least_per_s}
    return found
