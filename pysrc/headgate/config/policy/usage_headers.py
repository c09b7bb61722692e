"""`usageHeaders` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.usage_headers import UsageHeaders

FIELDS = ("cost", "tokens", "overhead", "generation")


def parse(context: Context, record: Record) -> UsageHeaders:
    """Return the policy."""
    found = UsageHeaders(**{name: record.get(name, True) for name in FIELDS})
    if not any(getattr(found, name) for name in FIELDS):
        context.fault(Problem.VALUE, record, FIELDS[0], "all fields are off: leave usageHeaders out")
    return found


def dump(headers: UsageHeaders) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {name: getattr(headers, name) for name in FIELDS}
