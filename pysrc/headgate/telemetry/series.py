"""The limit of metric series of a configuration."""

from __future__ import annotations

from typing import Final

from headgate.ir.gateway import Gateway
from headgate_engine.shared.segment import SERIES_LIMIT

# Combinations of status, method and backend that a route typically has, and two series for the time of processing.
SERIES_PER_ROUTE: Final = 14


def series_limit(gateway: Gateway) -> int:
    """Return the maximum number of series: SERIES_LIMIT, and SERIES_PER_ROUTE for each route."""
    routes = sum(len(listener.routes) for bind in gateway.binds for listener in bind.listeners)
    return SERIES_LIMIT + SERIES_PER_ROUTE * routes
