"""The table of `gwctl proxy config resources`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

HEADS: Final = ("KIND", "ID", "OWNER", "REVISION", "UPDATED")


def resource_table(resources: Iterable[Mapping[str, Any]]) -> str:
    """Return the resources of an answer as lines. What the file defines has neither revision nor time."""
    rows = [HEADS, *map(_row, resources)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]
    return "".join("  ".join(map(str.ljust, row, widths)).rstrip() + "\n" for row in rows)


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    stored = "revision" in one
    # An id may hold anything that can be printed, and nothing else reaches a terminal.
    name = "".join(char if char.isprintable() else "?" for char in str(one.get("id", "")))
    owner, revision = ("stored", str(one["revision"])) if stored else ("file", "")
    return str(one.get("kind", "")), name, owner, revision, str(one.get("updatedAt", ""))
