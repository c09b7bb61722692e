"""Room for metrics."""

from __future__ import annotations

from headgate.config.load import TextSource, load
from headgate.telemetry.series import SERIES_PER_ROUTE, series_limit
from headgate_engine.shared.segment import SERIES_LIMIT


def test_each_route_adds_room() -> None:
    for count in (1, 700):
        routes = ",".join(f"{{matches: [{{path: {{exact: /{number}}}}}], backends: [{{host: 'h:1'}}]}}" for number in range(count))
        gateway = load(TextSource(f"gateways: {{default: {{port: 3000}}}}\nroutes: [{routes}]")).gateway
        assert series_limit(gateway) == SERIES_LIMIT + SERIES_PER_ROUTE * count
