"""`health` and `sessionAffinity` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.document.fields import show_milliseconds
from headgate.errors import Problem
from headgate.ir.policy.health import Eviction, Health


def parse(context: Context, record: Record) -> Health:
    """Return `health`."""
    eviction = record.get("eviction")
    return Health(
        unhealthy=checked(context, record, "unhealthyExpression", "answer"),
        eviction=None if eviction is None else _eviction(context, eviction),
    )


def _eviction(context: Context, record: Record) -> Eviction:
    for key in ("restoreHealth", "healthThreshold"):
        value = record.get(key)
        if value is not None and not 0 <= value <= 1:
            context.fault(Problem.VALUE, record, key, f"health.eviction.{key} must be between 0.0 and 1.0")
    failures = record.get("consecutiveFailures")
    if failures is not None and failures < 0:
        context.fault(Problem.VALUE, record, "consecutiveFailures", "cannot be negative; 0 never ejects")
    duration = record.get("duration")
    if duration == 0:
        context.fault(Problem.VALUE, record, "duration", "must be longer than 0")
    return Eviction(
        duration_ms=duration,
        consecutive=failures,
        threshold=record.get("healthThreshold"),
        restore=record.get("restoreHealth"),
    )


def parse_affinity(context: Context, record: Record) -> str | None:
    """Return the expression of `sessionAffinity`."""
    return checked(context, record, "source", "backend")


def dump(health: Health) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    if health.unhealthy is not None:
        found["unhealthyExpression"] = health.unhealthy
    eviction = health.eviction
    if eviction is not None:
        pairs = (
            ("duration", None if eviction.duration_ms is None else show_milliseconds(eviction.duration_ms)),
            ("consecutiveFailures", eviction.consecutive),
            ("healthThreshold", eviction.threshold),
            ("restoreHealth", eviction.restore),
        )
        found["eviction"] = {key: value for key, value in pairs if value is not None}
    return found
