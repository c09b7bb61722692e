"""Artificial delay of requests."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
    """The delay: `fixed_ms`, or an `expression` that gives a duration or a number of milliseconds."""

    fixed_ms: int = 0
    expression: str | None = None
