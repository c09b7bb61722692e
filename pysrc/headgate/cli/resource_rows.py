"""The table of `gwctl proxy config resources`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

NONE: Final = "-"
HEADS: Final = ("KIND", "ID", "OWNER", "REVISION", "UPDATED")


def resource_rows(resources: Iterable[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows for the resources of an answer. What the file defines has neither revision nor time."""
    return list(map(_row, resources))


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    stored = "revision" in one
    owner, revision = ("stored", str(one["revision"])) if stored else ("file", NONE)
    return str(one.get("kind", "")), str(one.get("id", "")), owner, revision, str(one.get("updatedAt", NONE))
