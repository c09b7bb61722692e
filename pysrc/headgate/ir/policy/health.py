"""When an endpoint counts as sick, and what happens to it then."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """`threshold` and `restore` are healths, 0..1. None: not given."""

    duration_ms: int | None = None
    consecutive: int | None = None
    threshold: float | None = None
    restore: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`unhealthy`: expression over a response; without one 5xx and gRPC failures are. No `eviction`: scores only."""

    unhealthy: str | None = None
    eviction: Eviction | None = None
