"""Makes the Grafana dashboard: `python deploy/grafana/dashboard.py > deploy/grafana/headgate.json`.

A row of panels is a line of the table below, so that the dashboard is read and changed here. Schema:
https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Json = dict[str, Any]
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
# What each query is restricted to: the variables at the top of the dashboard.
HERE = 'job="$job", instance=~"$instance"'
ROUTES = f'{HERE}, route=~"$route"'
WIDTH = 24
HEIGHT = 8


class Panel(NamedTuple):
    """One graph: its title, its unit, and (expression, legend) of its lines."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    about: str = ""


def _rate(family: str, by: str, where: str = ROUTES) -> str:
    return f"sum by ({by}) (rate({family}{{{where}}}[$__rate_interval]))"


def _quantile(quantile: float, family: str, by: str, where: str = ROUTES) -> str:
    inner = f"sum by ({', '.join(filter(None, (by, 'le')))}) (rate({family}_bucket{{{where}}}[$__rate_interval]))"
    return f"histogram_quantile({quantile}, {inner})"


def _quantiles(family: str, where: str = ROUTES) -> tuple[tuple[str, str], ...]:
    return tuple((_quantile(quantile, family, "", where), name) for quantile, name in QUANTILES)


QUANTILES = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
ERRORS = f'{ROUTES}, status=~"5.."'

FAILED_CALLS = f'{ROUTES}, error_type!=""'

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Traffic",
        (
            Panel("Requests by route", "reqps", ((_rate("gw_requests_total", "route"), "{{route}}"),)),
            Panel("Requests by status", "reqps", ((_rate("gw_requests_total", "status"), "{{status}}"),)),
            Panel(
                "Share of 5xx by route",
                "percentunit",
                (
                    (
                        f"{_rate('gw_requests_total', 'route', ERRORS)} / {_rate('gw_requests_total', 'route')}",
                        "{{route}}",
                    ),
                ),
            ),
            Panel(
                "Duration",
                "s",
                _quantiles("gw_request_duration_seconds"),
                "From a request's head to its response's end.",
            ),
            Panel(
                "What the gateway takes of it",
                "s",
                _quantiles("gw_request_processing_seconds"),
                "From a request's head to its first call upstream.",
            ),
            Panel("In flight", "short", ((f"sum by (instance) (gw_requests_in_flight{{{HERE}}})", "{{instance}}"),)),
            Panel(
                "Answers of the gateway itself",
                "reqps",
                ((_rate("gw_requests_total", "reason", f'{ROUTES}, reason!="Upstream"'), "{{reason}}"),),
            ),
            Panel(
                "Retries and limits",
                "reqps",
                (
                    (_rate("gw_retries_total", "route"), "retries of {{route}}"),
                    (_rate("gw_limit_decisions_total", "limit", f'{HERE}, decision="limited"'), "limited: {{limit}}"),
                ),
            ),
        ),
    ),
    (
        "Models",
        (
            Panel(
                "Tokens by model",
                "short",
                (
                    (
                        _rate("gw_gen_ai_client_token_usage_sum", "gen_ai_request_model, gen_ai_token_type"),
                        "{{gen_ai_request_model}} {{gen_ai_token_type}}",
                    ),
                ),
                "Tokens a second, as providers count.",
            ),
            Panel(
                "Money by model",
                "currencyUSD",
                (
                    (
                        f"sum by (gen_ai_request_model) (increase(gw_gen_ai_client_cost_usd_total{{{ROUTES}}}[1h]))",
                        "{{gen_ai_request_model}}",
                    ),
                ),
                "US dollars in the last hour, by the cost catalog.",
            ),
            Panel(
                "Time to first token",
                "s",
                (
                    (
                        _quantile(0.95, "gw_gen_ai_server_time_to_first_token", "gen_ai_request_model"),
                        "{{gen_ai_request_model}} p95",
                    ),
                ),
            ),
            Panel(
                "Calls to providers",
                "s",
                ((_quantile(0.95, "gw_gen_ai_server_request_duration", "gen_ai_system"), "{{gen_ai_system}} p95"),),
            ),
            Panel(
                "Errors of providers",
                "reqps",
                (
                    (
                        _rate("gw_gen_ai_server_request_duration_count", "gen_ai_system, error_type", FAILED_CALLS),
                        "{{gen_ai_system}} {{error_type}}",
                    ),
                ),
                "Statuses of answers, and how calls without one have failed.",
            ),
            Panel(
                "Streams",
                "reqps",
                ((_rate("gw_stream_duration_seconds_count", "kind"), "{{kind}}"),),
                "WebSocket and other upgrades, tunnels and event streams that ended.",
            ),
        ),
    ),
    (
        "MCP and guards",
        (
            Panel(
                "MCP messages", "reqps", ((_rate("gw_mcp_requests_total", "server, method"), "{{server}} {{method}}"),)
            ),
            Panel(
                "MCP sessions", "short", ((f"max by (instance, backend) (gw_mcp_sessions{{{HERE}}})", "{{backend}}"),)
            ),
            Panel(
                "Guards",
                "reqps",
                ((_rate("gw_guardrail_checks_total", "phase, action", HERE), "{{phase}} {{action}}"),),
            ),
        ),
    ),
    (
        "Backends and clients",
        (
            Panel(
                "Connections upstream",
                "short",
                ((f"sum by (endpoint, state) (gw_upstream_connections_open{{{HERE}}})", "{{endpoint}} {{state}}"),),
            ),
            Panel(
                "Waiting and ejected",
                "short",
                (
                    (f"sum by (endpoint) (gw_upstream_calls_waiting{{{HERE}}})", "{{endpoint}} waiting"),
                    (f"max by (backend, endpoint) (gw_endpoint_ejected{{{HERE}}})", "{{endpoint}} ejected"),
                ),
            ),
            Panel(
                "Client connections",
                "short",
                ((f"sum by (state) (gw_downstream_connections_open{{{HERE}}})", "{{state}}"),),
            ),
            Panel(
                "Failed handshakes",
                "short",
                ((_rate("gw_tls_handshake_failures_total", "bind, reason", HERE), "{{bind}} {{reason}}"),),
            ),
        ),
    ),
    (
        "Process",
        (
            Panel(
                "CPU",
                "short",
                ((f"rate(gw_process_cpu_seconds_total{{{HERE}}}[$__rate_interval])", "{{instance}} {{process}}"),),
                "Processors in use.",
            ),
            Panel("Memory", "bytes", ((f"gw_process_resident_memory_bytes{{{HERE}}}", "{{instance}} {{process}}"),)),
            Panel(
                "Descriptors in use",
                "percentunit",
                (
                    (
                        f"gw_process_open_descriptors{{{HERE}}} / gw_process_max_descriptors{{{HERE}}}",
                        "{{instance}} {{process}}",
                    ),
                ),
            ),
            Panel(
                "Configuration",
                "short",
                (
                    (f"gw_config_synchronized{{{HERE}}}", "{{instance}} runs the newest"),
                    (f"increase(gw_config_reloads_total{{{HERE}}}[5m])", "{{instance}} reloads: {{result}}"),
                ),
            ),
            Panel(
                "Days until certificates expire",
                "d",
                ((f"(gw_certificate_expiry_timestamp_seconds{{{HERE}}} - time()) / 86400", "{{listener}}"),),
            ),
        ),
    ),
)


def _variable(name: str, query: str, several: bool) -> Json:
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": several,
        "includeAll": several,
        "allValue": ".*" if several else None,
        "current": {"text": "All", "value": "$__all"} if several else {"text": "", "value": ""},
    }


def _graph(number: int, panel: Panel, place: Json) -> Json:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": DATASOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": {"fillOpacity": 10, "showPoints": "never"}},
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {"refId": chr(65 + at), "datasource": DATASOURCE, "expr": expression, "legendFormat": legend}
            for at, (expression, legend) in enumerate(panel.lines)
        ],
    }


def dashboard() -> Json:
    """Return the dashboard."""
    panels: list[Json] = []
    top = 0
    for title, row in ROWS:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
            }
        )
        top += 1
        across = 4 if len(row) % 4 == 0 else 3
        for at, panel in enumerate(row):
            place = {
                "x": at % across * (WIDTH // across),
                "y": top + at // across * HEIGHT,
                "w": WIDTH // across,
                "h": HEIGHT,
            }
            panels.append(_graph(len(panels) + 1, panel, place))
        top += -(-len(row) // across) * HEIGHT
    return {
        "uid": "headgate",
        "title": "Headgate",
        "tags": ["headgate"],
        "timezone": "browser",
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": []},
        "links": [],
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Data source",
                    "type": "datasource",
                    "query": "prometheus",
                    "current": {"text": "", "value": ""},
                },
                _variable("job", "label_values(gw_build_info, job)", False),
                _variable("instance", 'label_values(gw_build_info{job="$job"}, instance)', True),
                _variable("route", 'label_values(gw_requests_total{job="$job", instance=~"$instance"}, route)', True),
            ]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    print(json.dumps(dashboard(), indent=1))
