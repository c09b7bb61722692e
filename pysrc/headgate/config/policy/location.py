"""Credential locations to the IR and back."""

from __future__ import annotations

from typing import Any

from headgate.config.check import Record
from headgate.config.context import Context
from headgate.config.policy.expression import checked
from headgate.ir.policy.location import Location


def parse(context: Context, record: Record | None, default: Location) -> Location:
    """Return the location of a record, `default` without one."""
    if record is None:
        return default
    header, query, cookie = (record.get(key) for key in ("header", "queryParameter", "cookie"))
    if header is not None:
        return Location(kind="header", name=header["name"], prefix=header.get("prefix") or "")
    if query is not None:
        return Location(kind="query", name=query["name"], prefix="")
    if cookie is not None:
        return Location(kind="cookie", name=cookie["name"], prefix="")
    text = checked(context, record, "expression", context.phase)
    return default if text is None else Location(kind="expression", name="", prefix="", expression=text)


def dump(location: Location) -> dict[str, Any]:
    """Return the form of the configuration dump."""
    if location.kind == "header":
        found: dict[str, Any] = {"name": location.name}
        if location.prefix:
            found["prefix"] = location.prefix
        return {"header": found}
    if location.kind == "expression":
        return {"expression": location.expression}
    return {"queryParameter" if location.kind == "query" else "cookie": {"name": location.name}}
