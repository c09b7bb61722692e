"""Alerts of deploy/prometheus at a real Prometheus server that scrapes a gateway."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.end_to_end.running import PATIENCE, Gateway, free_port

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")
def test_a_rejected_configuration_fires_at_a_real_server(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    running = gateway("gateways: {default: {port: {port}}}\nroutes: [{policies: {directResponse: {status: 200, body: hi}}}]\n")
    rules = yaml.safe_load(ALERTS.read_text())
    for rule in rules["groups"][0]["rules"]:
        rule.pop("for", None)
    (tmp_path / "rules.yaml").write_text(json.dumps(rules))
    own = free_port()
    (tmp_path / "prometheus.yml").write_text(json.dumps({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(tmp_path / "rules.yaml")],
        "scrape_configs": [{"job_name": "headgate", "static_configs": [{"targets": [f"127.0.0.1:{running.stats}"]}]}],
    }))  # fmt: skip
    server = subprocess.Popen(
        ["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}", f"--storage.tsdb.path={tmp_path / 'data'}",
         f"--web.listen-address=127.0.0.1:{own}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(own, lambda fired: fired is not None)
        assert firing(own) == set()
        running.path.write_text(running.path.read_text() + "\nroutes: 5\n")
        until(own, lambda fired: fired == {"HeadgateConfigurationRejected"})
    finally:
        server.kill()
        server.wait()


def firing(port: int) -> set[str] | None:
    """The alerts that fire; None before the rules have been evaluated."""
    try:
        groups: Any = httpx.get(f"http://127.0.0.1:{port}/api/v1/rules", timeout=60).json()["data"]["groups"]
    except (httpx.TransportError, ValueError):
        return None
    rules = [rule for group in groups for rule in group["rules"]]
    if not rules or any(rule["health"] != "ok" for rule in rules):
        return None
    return {rule["name"] for rule in rules if rule["state"] == "firing"}


def until(port: int, condition: Callable[[set[str] | None], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition(found := firing(port)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
