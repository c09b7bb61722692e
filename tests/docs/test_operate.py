"""The commands of the page on operation do what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.end_to_end.asking import ask
from tests.end_to_end.conftest import gateway, resting  # noqa: F401 - fixtures
from tests.end_to_end.running import free_port
from tests.end_to_end.tracing import checked, wait_for, watchers

from headgate.trace.events import TYPES

PAGE = (Path(__file__).parents[2] / "docs/operate.md").read_text()
BLOCKS = dict(re.findall(r"^## ([^\n]*)\n(?:(?!^## ).)*?^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: web
  policies: {directResponse: {status: 200, body: x}}
"""


@pytest.fixture
def running(gateway):
    return gateway(CONFIG, workers=2)


@pytest.fixture
def shell(running, tmp_path: Path):
    (tmp_path / "bin").mkdir()
    for name, words in (("headgate", " -m headgate.cli.main"), ("python", "")):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable}{words} "$@"\n')
        command.chmod(0o755)
    (tmp_path / "config.yaml").symlink_to(running.path)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"

    def run(title: str) -> list[str]:
        """The output of each command of a section."""
        found = []
        for line in BLOCKS[title].strip().splitlines():
            text = line
            for port, own in ((15000, running.admin), (15020, running.stats), (15021, running.readiness)):
                text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{own}")
            done = subprocess.run(
                ["/bin/sh", "-c", text], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
                timeout=550, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            found.append(done.stdout)
        return found

    return run


def test_every_section_with_commands_is_tested() -> None:
    names = Path(__file__).read_text()
    assert len(BLOCKS) == 12
    for title in BLOCKS:
        assert f'shell("{title}")' in names or f'BLOCKS["{title}"]' in names, title


def test_log_levels(shell) -> None:
    assert shell("Log levels") == [
        "current log level is info\n",
        "current log level is headgate.mcp=debug,request=warn,info\n",
        "current log level is info\n",
    ]


def test_trace(shell, running) -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(shell("Trace")))
    thread.start()
    wait_for(lambda: watchers(running) == 1)
    ask(running, path="/other")
    ask(running, path="/api/x")
    thread.join()
    assert found[0].startswith(": ready\n\n")
    events = [checked(json.loads(line[6:])) for line in found[0].splitlines() if line.startswith("data: ")]
    assert events[1]["message"]["requestState"]["request"]["path"] == "/api/x"
    (example,) = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    shape = checked(json.loads(example))
    same = next(event for event in events if event["message"]["type"] == "routeSelection")
    assert same["message"] == shape["message"]


def test_the_page_names_every_type_of_event() -> None:
    assert [name for name in TYPES if f"`{name}`" not in PAGE] == []


def test_tasks_and_memory(shell) -> None:
    tasks, memory = shell("Tasks and memory")
    assert set(json.loads(tasks)) == {"admin", "workload"}
    assert json.loads(memory)["pprof"] is None
    for name in re.findall(r"^\| `(smaps\.rss|allocator[^`]*|python[^`]*)`", PAGE, re.MULTILINE):
        for process in json.loads(memory)["processes"]:
            value = process
            for key in name.split(",")[0].split("."):
                value = value[key]
            assert value > 0, name


@pytest.mark.timeout(600)
def test_profiles(shell) -> None:
    text = shell("CPU profile")[1]
    assert "Type: cpu" in text
    on, _, text, off = shell("Heap profile")
    assert on == "one sample for each 524288 bytes allocated\n"
    assert "Type: inuse_space" in text
    assert off == "allocations are not sampled\n"


def test_checks(shell) -> None:
    assert shell("Check a new configuration") == ["Configuration is valid!\n", "no differences\n"]


def test_schema_for_editors(shell, tmp_path) -> None:
    shell("Schema for editors")
    mark, _, document = (tmp_path / "config.yaml").read_text().partition("\n")
    named = tmp_path / mark.removeprefix("# yaml-language-server: $schema=")
    known = jsonschema.Draft202012Validator(json.loads(named.read_text()))
    assert list(known.iter_errors(yaml.safe_load(document))) == []
    assert list(known.iter_errors({"gateways": 5})) != []


def test_writing(shell, running) -> None:
    _, answer = shell("Write the configuration")
    assert json.loads(answer)["message"] == "Configuration written successfully"
    assert running.path.read_text().startswith("# yaml-language-server: $schema=")


def test_prices(shell) -> None:
    (found,) = shell("Prices")
    assert json.loads(found)["models"] == []


def test_readiness_and_metrics(shell) -> None:
    ready, metrics = shell("Readiness and metrics")
    assert ready == "ready\n"
    assert "# TYPE gw_workers gauge\ngw_workers 2\n" in metrics


def test_a_gateway_for_one_command(tmp_path: Path) -> None:
    port = str(free_port())
    (tmp_path / "config.yaml").write_text(
        "config: {workerThreads: 1, adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off'}\n" + CONFIG.replace("{port: {port}}", f"{{port: {port}}}")
    )
    command = [sys.executable, "-m", "headgate.cli.main"]
    line = BLOCKS["A gateway for one command"].strip().replace("127.0.0.1:3000", f"127.0.0.1:{port}")
    done = subprocess.run(
        [*command, *line.split()[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "x"), done.stderr
    wait_for(lambda: "stopped" in (tmp_path / "gateway.log").read_text())


def test_stop(shell, running) -> None:
    assert shell("Stop") == ["shutdown now\n"]
    assert running.process.wait(30) == 0
