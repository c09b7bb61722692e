"""What only workers find out about a configuration is told by `--validate-only` too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.config.load import TextSource, load
from headgate.errors import ConfigErrors
from headgate.server.dry_run import dry_run

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ROUTE = """
gateways: {default: {port: 8080}}
routes:
- policies: {backendAuth: {aws: {REGION}}}
  backends: [{host: "example.com:443"}]
"""


def told(text: str) -> list[str]:
    return dry_run(load(TextSource(text), environ={}).gateway)


def test_a_region_that_nothing_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    [error] = told(ROUTE.replace("REGION", ""))
    assert error == "bind/8080: backendAuth.aws needs a region: it cannot be derived from the host 'example.com'"
    assert told(ROUTE.replace("REGION", "region: eu-west-1, serviceName: execute-api")) == []
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "a service name" in told(ROUTE.replace("REGION", ""))[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_pages_show_runs(page: Path) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        try:
            gateway = load(TextSource(block), environ={}).gateway
        except ConfigErrors:
            continue         # it wants files or an environment of its own; other tests load it
        assert dry_run(gateway) == []


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ROUTE.replace("REGION", ""))

    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "headgate.cli.main", "--validate-only", "-f", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)

    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    refused = run()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "needs a region" in refused.stderr
    path.write_text(ROUTE.replace("REGION", "region: eu-west-1, serviceName: execute-api"))
    assert (run().returncode, run().stdout) == (0, "Configuration is valid!\n")
