"""How many series of metrics a configuration may have."""

from __future__ import annotations

from typing import Final

from headgate.ir.gateway import Gateway
from headgate_engine.shared.segment import SERIES_LIMIT

# Statuses, methods and backends of one route that happen together.
SERIES_PER_ROUTE: Final = 12


def series_limit(gateway: Gateway) -> int:
    """Return the most series of a configuration: what any may have, and some for each of its routes."""
    routes = sum(len(listener.routes) for bind in gateway.binds for listener in bind.listeners)
    return SERIES_LIMIT + SERIES_PER_ROUTE * routes
