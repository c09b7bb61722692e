"""Passive health checks: when an endpoint is unhealthy, and its ejection."""

from __future__ import annotations

from headgate.document.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """The ejection of an unhealthy endpoint. `threshold` and `restore` are health scores, 0..1. None means unset."""

    duration_ms: int | None = None
    consecutive: int | None = None
    threshold: float | None = None
    restore: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health policy of a backend.

    `unhealthy` is an expression over a response; None means that statuses 5xx and gRPC failures are unhealthy. Without
    `eviction` the health score only affects load balancing.
    """

    unhealthy: str | None = None
    eviction: Eviction | None = None
