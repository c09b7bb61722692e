"""`csrf` to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.errors import Problem
from headgate.ir.policy.csrf import Csrf
from headgate_engine.steps.cors import OriginRule


def parse(context: Context, record: Record) -> Csrf:
    """Return the policy; an origin is one place, without stars."""
    origins = tuple(record.get("additionalOrigins") or ())
    for origin in origins:
        try:
            OriginRule(origin)
            if "*" in origin:
                raise ValueError(f"{origin!r} is not an origin such as https://a.example:8443")
        except ValueError as error:
            context.fault(Problem.VALUE, record, "additionalOrigins", str(error))
    return Csrf(origins=origins)


def dump(csrf: Csrf) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    return {"additionalOrigins": list(csrf.origins)}
