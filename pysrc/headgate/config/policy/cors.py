"""`cors` to the IR and back."""

from __future__ import annotations

from typing import Any, Final

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.document import fields
from headgate.errors import Problem
from headgate.ir.policy.cors import Cors
from headgate_engine.steps.cors import OriginRule

LISTS: Final = (
    ("allowOrigins", "origins"),
    ("allowMethods", "methods"),
    ("allowHeaders", "headers"),
    ("exposeHeaders", "exposed"),
)


def parse(context: Context, record: Record) -> Cors:
    """Return the policy; what is no origin, method or header name is reported."""
    lists = {field: tuple(record.get(key) or ()) for key, field in LISTS}
    for origin in lists["origins"]:
        try:
            OriginRule(origin)
        except ValueError as error:
            context.fault(Problem.VALUE, record, "allowOrigins", str(error))
    for key, field in LISTS[1:]:
        for name in lists[field]:
            try:
                if name != "*":
                    fields.header_name(name)
            except ValueError as error:
                context.fault(Problem.VALUE, record, key, f"{name!r}: {error}")
    if "*" in lists["origins"] and record.get("allowCredentials"):
        context.warnings.append(
            f"{record.path}: every web site can read responses with the credentials of its visitors: "
            "'*' in allowOrigins and allowCredentials"
        )
    age = record.get("maxAge")
    return Cors(
        **lists,
        credentials=record.get("allowCredentials", False),
        max_age_s=None if age is None else age // 1000,
    )


def dump(cors: Cors) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    found: dict[str, Any] = {key: list(getattr(cors, field)) for key, field in LISTS if getattr(cors, field)}
    if cors.credentials:
        found["allowCredentials"] = True
    if cors.max_age_s is not None:
        found["maxAge"] = f"{cors.max_age_s}s"
    return found
