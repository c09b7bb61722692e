"""`localRateLimit` to the IR and back."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.conditional import conditions
from headgate.document.fields import show_milliseconds
from headgate.document.lazy_dataclass import replace
from headgate.errors import Problem
from headgate.ir.policies import LocalRateLimit

UNIT_NS: Final = {"seconds": 10**9, "minutes": 60 * 10**9, "hours": 3600 * 10**9}
NS_PER_MS: Final = 1_000_000


def _limit(context: Context, record: Record, owner: str, index: int) -> LocalRateLimit:
    tokens = record.get("type") == "tokens" or "tokens" in record
    if "unit" in record:
        fill, interval = record["tokens" if tokens else "requests"], UNIT_NS[record["unit"]]
        most = fill + record.get("burst", 0)
    else:
        most, fill, interval = (
            record.get("maxTokens", 0),
            record.get("tokensPerFill", 0),
            record["fillInterval"],
        )
        if interval == 0:
            context.fault(Problem.VALUE, record, "fillInterval", "the interval must be longer than 0")
        if most < fill:
            message = "max tokens cannot be less than the refill amount"
            context.fault(Problem.VALUE, record, "maxTokens", message)
    key = f"limit/{owner}/{index}/{most}-{fill}-{interval}{'t' if tokens else ''}"
    return LocalRateLimit(
        key=key, max_tokens=most, tokens_per_fill=fill, fill_interval_ns=interval, tokens=tokens
    )


def parse(context: Context, holder: Record, key: str, owner: str) -> tuple[LocalRateLimit, ...] | None:
    """Return the buckets of a list of entries; `owner` is part of their identity."""
    value = holder.get(key)
    if isinstance(value, Record):
        chosen = [
            (_limit(context, record, owner, index), condition)
            for index, (record, condition) in enumerate(conditions(context, value))
        ]
        return tuple(replace(limit, condition=condition, conditional=True) for limit, condition in chosen)
    if not isinstance(value, list):
        return None
    return tuple(_limit(context, record, owner, index) for index, record in enumerate(value))


def _shown(limit: LocalRateLimit) -> dict[str, Any]:
    interval = limit.fill_interval_ns
    whole = interval % NS_PER_MS == 0
    return {
        "maxTokens": limit.max_tokens,
        "tokensPerFill": limit.tokens_per_fill,
        "fillInterval": show_milliseconds(interval // NS_PER_MS) if whole else f"{interval}ns",
        "type": "tokens" if limit.tokens else "requests",
    }


def dump(limits: tuple[LocalRateLimit, ...]) -> list[dict[str, Any]] | dict[str, Any]:
    """Return the form of the configuration dump."""
    shown = [
        _shown(limit) | ({} if limit.condition is None else {"condition": limit.condition}) for limit in limits
    ]
    return {"conditional": shown} if limits and all(limit.conditional for limit in limits) else shown
