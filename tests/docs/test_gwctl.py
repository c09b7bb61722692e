"""The commands of the page on gwctl do what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from cluster_rig import StandIn, cluster, pod  # noqa: F401 - a fixture
from tests.end_to_end.conftest import gateway, resting  # noqa: F401 - fixtures

PAGE = Path(__file__).parents[2] / "docs" / "gwctl.md"
TEXT = PAGE.read_text()
BLOCKS = dict(re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: shop
  policies: {directResponse: {status: 200, body: hello}}
"""


@pytest.fixture
def settings() -> str:
    return ""


@pytest.fixture
def shell(gateway: Callable[..., Any], tmp_path: Path, settings: str) -> Callable[[str], list[str]]:
    running = gateway(CONFIG, workers=2, settings=settings)
    command = tmp_path / "bin" / "gwctl"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m headgate.cli.gwctl "$@"\n')
    command.chmod(0o755)

    def run(title: str) -> list[str]:
        """The output of each command of a section."""
        found = []
        for line in BLOCKS[title].strip().splitlines():
            text = line.replace("--port 8080", f"--port {running.port}")
            text = re.sub(r"--local|gateway/edge -n shop|deploy/edge\.shop", rf"\g<0> -p {running.admin}", text)
            done = subprocess.run(
                ["/bin/sh", "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
                env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            found.append(done.stdout)
        return found

    return run


def test_gateways_of_a_cluster(
    shell: Callable[[str], list[str]], cluster: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels = {"gateway.networking.k8s.io/gateway-name": "edge"}
    path = "/api/v1/namespaces/shop/pods?" + urlencode({"labelSelector": ",".join(f"{k}={v}" for k, v in labels.items())})
    cluster.objects[path] = {"items": [pod("edge-1")]}
    cluster.objects["/apis/apps/v1/namespaces/shop/deployments/edge"] = {"spec": {"selector": {"matchLabels": labels}}}
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    whole, level, trace = shell("Gateways of a cluster")
    assert "binds" in json.loads(whole)
    assert level == "current log level is debug\n"
    assert json.loads(trace.splitlines()[-1])["message"]["type"] == "requestFinished"


def test_every_section_with_commands_is_tested() -> None:
    sections = ["Gateways of a cluster", "What is in force", "Trace", "Configuration", "Traffic", "Log levels", "Upgrades", "Prices", "Profiles"]
    assert list(BLOCKS) == sections  # upgrades: tests/end_to_end/test_upgrade.py
    for picture in re.findall(r"!\[.*\]\((.*)\)", TEXT):
        assert (PAGE.parent / picture).exists()


def test_what_is_in_force(shell: Callable[[str], list[str]]) -> None:
    gateways, routes, backends, policies = shell("What is in force")
    assert [(one["name"], one["routes"], one["inForce"]) for one in json.loads(gateways)] == [("default", 1, "yes")]
    assert routes.splitlines()[1].split()[:3] == ["route", "default", "shop"]
    assert backends == ""
    assert all(one["inForce"] == "yes" for one in yaml.safe_load(policies) or ())


def test_trace(shell: Callable[[str], list[str]]) -> None:
    first, _saved, replayed = shell("Trace")
    for text in (first, replayed):
        events = [json.loads(line)["message"]["type"] for line in text.splitlines()]
        assert (events[0], events[-1]) == ("requestStarted", "requestFinished")
    assert '"method":"POST"' in first


def test_configuration(shell: Callable[[str], list[str]]) -> None:
    whole, _saved, table, rows, resources = shell("Configuration")
    assert yaml.safe_load(whole)["binds"]
    assert table.split() == ["TYPE", "NAME", "NAMESPACE", "ENDPOINT", "HEALTH", "REQUESTS", "LATENCY", "ADDRESS"]
    assert json.loads(rows) == []
    assert [line.split() for line in resources.splitlines()] == [["KIND", "ID", "OWNER", "REVISION", "UPDATED"], ["traffic.route", "shop", "file", "-", "-"]]


def test_log_levels(shell: Callable[[str], list[str]]) -> None:
    before, changed, modules, again = shell("Log levels")
    assert (before, changed) == ("current log level is info\n", "current log level is debug\n")
    assert set(modules.split()[-1].split(",")) == {"debug", "headgate.mcp=trace", "request=off"}
    assert again == before


def test_prices(shell: Callable[[str], list[str]], tmp_path: Path) -> None:
    cost = {"input": 1.25, "output": 10}
    data = {name: {"models": {"m": {"cost": cost}}} for name in ("google", "anthropic", "openai")}
    (tmp_path / "api.json").write_text(json.dumps(data))
    nothing, some = shell("Prices")
    assert nothing == ""
    assert set(json.loads((tmp_path / "prices.json").read_text())["providers"]) == {"gcp.gemini", "anthropic", "openai"}
    assert json.loads(some)["providers"]["gcp.gemini"] == {
        "models": {"m": {"rates": {"input": "1.25", "output": "10"}}}
    }


def test_profiles(shell: Callable[[str], list[str]], tmp_path: Path) -> None:
    cpu, heap, flame = shell("Profiles")
    assert (tmp_path / cpu.split()[-1]).stat().st_size > 0
    assert heap == "Wrote heap profile to heap.pb.gz\n"
    assert flame == "Wrote flame graph to heap.html\n"
    assert (tmp_path / "heap.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("settings", ["database: {url: 'sqlite://data.db'}"])
def test_traffic(shell: Callable[[str], list[str]]) -> None:
    routes, models, mcp, requests, top = shell("Traffic")
    assert routes.splitlines()[1].split()[0] == "default/shop"
    assert models.split()[:2] == ["MODEL", "PROVIDER"]
    assert json.loads(mcp) == []
    assert requests.split()[:2] == ["TIME", "STATUS"]
    assert "  2 workers  configuration 1  headgate " in top.splitlines()[0]
