"""The operator's servers."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies: {directResponse: {status: 200, body: x}}
"""


@pytest.fixture
def running(gateway):
    return gateway(CONFIG, workers=2)


def admin(running, path: str, method: str = "GET", **options: object) -> tuple[int, str]:
    return running.fetch(f"http://127.0.0.1:{running.admin}{path}", method, **options)


def test_the_dump_shows_the_configuration_and_every_worker(running) -> None:
    document = json.loads(admin(running, "/config_dump")[1])
    bind = document["binds"][0]
    assert bind["key"] == f"bind/{running.port}"
    assert document["config"]["generation"] == 1 or document.get("generation") == 1
    assert [worker["generation"] for worker in document["workers"]] == [1, 1]
    assert document["version"]["version"]


def test_two_dumps_of_one_state_are_the_same_but_for_the_workers_numbers(running) -> None:
    first, second = (json.loads(admin(running, "/config_dump")[1]) for _ in range(2))
    first.pop("workers"), second.pop("workers")
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.parametrize(
    ("method", "path", "status", "text"),
    [
        ("GET", "/logging", 200, "current log level is info\n"),
        ("POST", "/logging", 200, "current log level is info\n"),
        (
            "POST",
            "/logging?level=headgate.downstream=debug,warn",
            200,
            "current log level is headgate.downstream=debug,warn\n",
        ),
        ("POST", "/logging?level=loud", 400, "Invalid level provided: loud\n"),
        ("POST", "/logging?level=module", 400, "Invalid level provided"),
        ("POST", "/logging?reset", 200, "current log level is info\n"),
        ("DELETE", "/logging", 405, ""),
        ("GET", "/quitquitquit", 405, ""),
        ("POST", "/config_dump", 405, ""),
        ("GET", "/nothing", 404, ""),
        ("GET", "/", 200, "<!doctype html>"),
    ],
)
def test_endpoints(running, method: str, path: str, status: int, text: str) -> None:
    found, body = admin(running, path, method)
    assert found == status
    assert body.startswith(text)


def test_a_log_level_reaches_the_workers(running) -> None:
    admin(running, "/logging?level=headgate.downstream=debug", "POST")
    subprocess.run(["curl", "-s", "--http0.9", "-H", "host:", running.url], capture_output=True, check=False)
    running.wait_log("request refused")


def test_request_lines_obey_the_level(running) -> None:
    admin(running, "/logging?level=request=warn", "POST")
    running.fetch(f"{running.url}/unlogged")
    admin(running, "/logging?reset", "POST")
    running.fetch(f"{running.url}/logged")
    running.wait_log("/logged")
    assert "/unlogged" not in running.log()


def test_memory_covers_all_processes(running) -> None:
    document = json.loads(admin(running, "/memory")[1])
    assert [process["role"] for process in document["processes"]] == ["supervisor", "worker", "worker"]
    assert all(process["smaps"]["rss"] > 1_000_000 for process in document["processes"])


def test_a_foreign_host_name_is_refused(running) -> None:
    assert admin(running, "/config_dump", headers={"host": "evil.example"})[0] == 421


def test_readiness_answers_get_only(running) -> None:
    url = f"http://127.0.0.1:{running.readiness}"
    assert running.fetch(f"{url}/healthz/ready") == (200, "ready\n")
    assert running.fetch(f"{url}/healthz/ready", "POST")[0] == 405
    assert running.fetch(f"{url}/other")[0] == 404


def test_metrics_are_well_formed(running) -> None:
    running.fetch(running.url)
    status, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    assert status == 200
    assert page.endswith("\n")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert running.metric("gw_workers") == 2
    assert running.metric("gw_build_info") == 1
    assert running.metric("gw_request_duration_seconds_count") == 1
