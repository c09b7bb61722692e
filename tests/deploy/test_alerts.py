"""Alerts of deploy/prometheus: each fires for what it is for, and not for what is usual. A server: end_to_end/test_alerts.py."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from headgate.telemetry.families import FAMILIES

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (package prometheus)")


class Case(NamedTuple):
    """Series (name to values in promtool's notation, one a minute) for which an alert fires after two hours, and for which not."""

    fires: dict[str, str]
    rests: dict[str, str]


UP = 'up{job="headgate",instance="a"}'
ROUTE = 'gw_requests_total{instance="a",route="default/r",protocol="%s",status="%s"}'
BUCKET = 'gw_request_processing_seconds_bucket{instance="a",le="%s"}'
LABELS = '{instance="a",bind="bind/443",listener="l"}'
CASES = {
    "HeadgateDown": Case({UP: "0x120"}, {UP: "1x120"}),
    "HeadgateConfigurationRejected": Case({"gw_config_synchronized": "0x120"}, {"gw_config_synchronized": "1x120"}),
    "HeadgateWorkersRestart": Case({"gw_worker_restarts_total": "0x110 4x10"}, {"gw_worker_restarts_total": "9x120"}),
    "HeadgateWorkersHang": Case({"gw_worker_hangs_total": "0x110 1x10"}, {"gw_worker_hangs_total": "1x120"}),
    "HeadgateErrors": Case(
        {ROUTE % ("http", 200): "0+90x120", ROUTE % ("http", 502): "0+10x120"},
        {ROUTE % ("http", 200): "0+90x120", ROUTE % ("http", 502): "0+1x120", ROUTE % ("http", 404): "0+50x120"},
    ),
    "HeadgateSlowProcessing": Case(
        {BUCKET % "0.05": "0+90x120", BUCKET % "0.25": "0+100x120", BUCKET % "+Inf": "0+100x120"},
        {BUCKET % "0.05": "0+100x120", BUCKET % "0.25": "0+100x120", BUCKET % "+Inf": "0+100x120"},
    ),
    "HeadgateEndpointEjected": Case(
        {'gw_endpoint_ejected{backend="b",endpoint="e"}': "1x120"}, {'gw_endpoint_ejected{backend="b",endpoint="e"}': "0x120"}
    ),
    "HeadgateCallsWait": Case({"gw_upstream_calls_waiting": "500x120"}, {"gw_upstream_calls_waiting": "5x120"}),
    "HeadgateCallsRefused": Case({"gw_upstream_refused_total": "0x116 3x4"}, {"gw_upstream_refused_total": "3x120"}),
    "HeadgateProviderFails": Case(
        {ROUTE % ("llm", 200): "0+80x120", ROUTE % ("llm", 429): "0+20x120"},
        {ROUTE % ("llm", 200): "0+80x120", ROUTE % ("http", 429): "0+20x120"},
    ),
    "HeadgateCertificateExpires": Case(
        {"gw_certificate_expiry_timestamp_seconds" + LABELS: f"{3 * 86400}x120"},
        {"gw_certificate_expiry_timestamp_seconds" + LABELS: f"{60 * 86400}x120"},
    ),
    "HeadgateSpiffeIdentityExpires": Case(
        {"gw_spiffe_svid_expiry_timestamp_seconds": "7300x120"}, {"gw_spiffe_svid_expiry_timestamp_seconds": "3600+60x120"}
    ),
    "HeadgateHandshakesFail": Case(
        {'gw_tls_handshake_failures_total{instance="a",bind="b",reason="alert"}': "0+5x120",
         'gw_downstream_connections_total{instance="a",bind="b",listener="l"}': "0+10x120"},
        {'gw_tls_handshake_failures_total{instance="a",bind="b",reason="alert"}': "0+1x120",
         'gw_downstream_connections_total{instance="a",bind="b",listener="l"}': "0+10x120"},
    ),
    "HeadgateDescriptorsRunOut": Case(
        {'gw_process_open_descriptors{process="p"}': "950x120", 'gw_process_max_descriptors{process="p"}': "1000x120"},
        {'gw_process_open_descriptors{process="p"}': "50x120", 'gw_process_max_descriptors{process="p"}': "1000x120"},
    ),
    "HeadgateTelemetryLost": Case(
        {'gw_request_log_records_total{outcome="dropped"}': "0x115 9x5"}, {'gw_request_log_records_total{outcome="written"}': "0+9x120"}
    ),
    "HeadgateSeriesOverflow": Case({"gw_metric_series_overflow_total": "0x110 9x10"}, {"gw_metric_series_overflow_total": "9x120"}),
}  # fmt: skip


def test_every_alert_has_a_case() -> None:
    assert sorted(rule["alert"] for rule in RULES) == sorted(CASES)


def test_alerts_name_metrics_that_there_are() -> None:
    known = {family.name for family in FAMILIES}
    known |= {f"{family.name}_{part}" for family in FAMILIES if family.kind == "histogram" for part in ("bucket", "sum", "count")}
    for rule in RULES:
        assert set(re.findall(r"\bgw_\w+", rule["expr"])) <= known, rule["alert"]


@needs_promtool
@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_for_what_it_is_for(name: str, tmp_path: Path) -> None:
    rule = next(rule for rule in RULES if rule["alert"] == name)
    tests = []
    for series, fires in ((CASES[name].fires, True), (CASES[name].rests, False)):
        tests.append({
            "interval": "1m",
            "input_series": [{"series": key, "values": values} for key, values in series.items()],
            "promql_expr_test": [{
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)', "eval_time": "2h",
                "exp_samples": [{"labels": "{}", "value": int(fires)}],
            }],
        })  # fmt: skip
    (tmp_path / "test.yaml").write_text(json.dumps({"rule_files": [str(ALERTS)], "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (rule, done.stdout + done.stderr)
