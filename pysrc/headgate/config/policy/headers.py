"""`requestHeaderModifier` and `responseHeaderModifier` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policies import HeaderModifier


def parse_request(context: Context, record: Record) -> HeaderModifier:
    """Return the changes of a request."""
    return HeaderModifier(
        add=tuple((record.get("add") or {}).items()),
        set=tuple((record.get("set") or {}).items()),
        remove=tuple(dict.fromkeys(record.get("remove") or ())),
    )


def parse_response(context: Context, record: Record) -> HeaderModifier:
    """Return the changes of a response, which has no authority to change."""
    modifier = parse_request(context, record)
    names = [name for name, _ in (*modifier.add, *modifier.set)] + list(modifier.remove)
    if ":authority" in names:
        context.fault(Problem.VALUE, record, "", "a response has no ':authority'")
    return modifier


def dump(modifier: HeaderModifier) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {}
    if modifier.add:
        found["add"] = dict(modifier.add)
    if modifier.set:
        found["set"] = dict(modifier.set)
    if modifier.remove:
        found["remove"] = list(modifier.remove)
    return found
