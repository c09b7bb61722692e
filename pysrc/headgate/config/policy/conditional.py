"""The form with conditions that some policies have: `{conditional: [{condition: <expression>, ...}]}`."""

from __future__ import annotations

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.errors import Problem


def conditions(context: Context, record: Record) -> list[tuple[Record, str | None]]:
    """Return entries with their conditions, or the record itself; only the last may be without one."""
    if "conditional" not in record:
        return [(record, None)]
    entries = record.records("conditional")
    found = []
    for index, entry in enumerate(entries):
        condition = checked(context, entry, "condition", context.phase)
        if condition is None and index < len(entries) - 1 and "condition" not in entry:
            message = "only the last entry may be without a condition"
            context.fault(Problem.VALUE, entry, "", message)
        found.append((entry, condition))
    return found
