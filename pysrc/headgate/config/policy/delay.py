"""`delay` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.document.fields import duration_ms, show_milliseconds
from headgate.ir.policy.delay import Delay


def parse(context: Context, record: Record) -> Delay:
    """Return the policy: a duration such as 100ms, or an expression."""
    text = record.get("duration", "0")
    try:
        return Delay(fixed_ms=duration_ms(text))
    except ValueError:
        return Delay(expression=checked(context, record, "duration", "route"))


def dump(delay: Delay) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {"duration": delay.expression or show_milliseconds(delay.fixed_ms)}
