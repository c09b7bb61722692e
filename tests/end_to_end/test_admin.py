"""The operator's servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.request

import pytest
from tests import forked_rig
from tests.headgate.admin.metrics_protobuf_rig import families

from headgate.admin import metrics_protobuf

pytestmark = pytest.mark.warm

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


@pytest.mark.cold
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


# In this order: levels stay until they are reset.
ENDPOINTS = [
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
]


@pytest.mark.cold
def test_endpoints(running) -> None:
    for method, path, status, text in ENDPOINTS:
        found, body = admin(running, path, method)
        assert found == status, path
        assert body.startswith(text), path


@pytest.mark.cold
def test_a_log_level_reaches_the_workers(running) -> None:
    admin(running, "/logging?level=headgate.downstream=debug", "POST")
    subprocess.run(["curl", "-s", "--http0.9", "-H", "host:", running.url], capture_output=True, check=False)
    running.wait_log("request refused")


@pytest.mark.cold
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
    for process in document["processes"]:
        assert process["allocator"]["comparable"]["allocated_bytes"] > 1_000_000
        assert process["allocator"]["specific"]["glibc"]["system_max"] > 1_000_000
        assert process["python"]["allocated_blocks"] > 10_000


def test_a_foreign_host_name_is_refused(running) -> None:
    assert admin(running, "/config_dump", headers={"host": "evil.example"})[0] == 421


def test_readiness_answers_get_only(running) -> None:
    url = f"http://127.0.0.1:{running.readiness}"
    assert running.fetch(f"{url}/healthz/ready") == (200, "ready\n")
    assert running.fetch(f"{url}/healthz/ready", "POST")[0] == 405
    assert running.fetch(f"{url}/other")[0] == 404


@pytest.mark.cold
def test_metrics_are_well_formed(running) -> None:
    running.fetch(running.url)
    status, page = running.fetch(f"http://127.0.0.1:{running.stats}/metrics")
    assert status == 200
    assert page.endswith("\n")
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    running.wait_metric("gw_workers", 2)
    running.wait_metric("gw_build_info", 1)
    running.wait_metric("gw_request_duration_seconds_count", 1)


def test_metrics_are_protobuf_for_those_who_prefer_it(running) -> None:
    url = f"http://127.0.0.1:{running.stats}/metrics"
    for accept, kind in (("application/vnd.google.protobuf,text/plain;q=0.5", metrics_protobuf.CONTENT_TYPE),
                         ("text/plain", "text/plain;charset=utf-8"), ("*/*", "text/plain;charset=utf-8")):  # fmt: skip
        with urllib.request.urlopen(urllib.request.Request(url, headers={"accept": accept}), timeout=60) as answer:
            assert answer.headers["content-type"] == kind
            page = answer.read()
        if kind == metrics_protobuf.CONTENT_TYPE:
            found = {one.name: one for one in families(page)}
            assert found["gw_workers"].metric[0].gauge.value == 2.0
        else:
            assert b"gw_workers 2\n" in page


def test_the_tasks_of_all_processes_are_shown(running) -> None:
    status, text = admin(running, "/debug/tasks")
    assert status == 200
    document = json.loads(text)
    assert text == json.dumps(document, separators=(",", ":")), "compact"
    assert set(document) == {"admin", "workload"}
    assert any("Supervisor.run" in tree for tree in document["admin"])
    for index in range(2):
        assert any(tree.startswith(f"worker {index} task control\n  WorkerProcess._control_loop ") for tree in document["workload"])
    assert admin(running, "/debug/tasks", "POST")[0] == 405


def test_a_worker_that_does_not_answer_does_not_spoil_the_list(running) -> None:
    stopped = running.worker_pids()[0]
    os.kill(stopped, signal.SIGSTOP)
    try:
        request = urllib.request.Request(f"http://127.0.0.1:{running.admin}/debug/tasks")
        with urllib.request.urlopen(request, timeout=60) as answer:
            document = json.loads(answer.read())
    finally:
        os.kill(stopped, signal.SIGCONT)
    assert "failed to dump workload tasks" in document["workload"]
    assert any("task control" in tree for tree in document["workload"])


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"origin": "http://evil.example"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, 403),
        ({"host": "evil.example"}, 421),
        ({"origin": "http://localhost:3000"}, 403),
        ({}, 200),
    ],
)
@pytest.mark.cold
def test_pages_of_other_sites_are_kept_out(running, fields: dict[str, str], status: int) -> None:
    assert admin(running, "/logging?level=debug", "POST", headers=fields)[0] == status
    expected = "debug" if status == 200 else "info"
    assert admin(running, "/logging")[1] == f"current log level is {expected}\n"


@pytest.mark.cold
def test_levels_add_up_and_reset(running) -> None:
    def level(query: str) -> set[str]:
        status, text = admin(running, f"/logging?{query}", "POST")
        assert status == 200
        return set(text.removeprefix("current log level is ").strip().split(","))

    assert level("level=headgate.mcp=warn") == {"headgate.mcp=warn", "info"}
    assert level("level=headgate.llm=debug,headgate.mcp=error") == {"headgate.mcp=error", "headgate.llm=debug", "info"}
    assert level("level=") == {"headgate.mcp=error", "headgate.llm=debug", "info"}
    assert level("reset=&level=warn") == {"warn"}
    assert level("reset") == {"info"}
    for bad in ("headgate.mcp:warn", "warn,", "headgate.mcp", "=warn", "headgate.mcp=loud"):
        assert admin(running, f"/logging?level={bad}", "POST")[0] == 400
    assert level("") == {"info"}


def headgate(*words: str) -> subprocess.CompletedProcess[str]:
    return forked_rig.run("headgate.cli.main", *words)


def test_a_file_is_compared_with_what_runs(running, tmp_path) -> None:
    url = f"http://127.0.0.1:{running.admin}"
    new = tmp_path / "new.yaml"
    new.write_text(running.path.read_text())
    same = headgate("-f", str(new), "--diff", url)
    assert (same.returncode, same.stdout) == (0, "no differences\n")
    new.write_text(running.path.read_text().replace("body: x", "body: y").replace("name: a", "name: b"))
    changed = headgate("-f", str(new), "--diff", url)
    assert changed.returncode == 3
    assert [line[0] for line in changed.stdout.splitlines()] == ["-", "+"]
    assert "routes.default/b" in changed.stdout
    assert '"name": "a"' in admin(running, "/config_dump")[1], "nothing was changed"


def test_a_file_with_keys_is_the_same_as_itself(gateway, tmp_path) -> None:
    text = """
    gateways: {default: {port: {port}}}
    routes:
    - policies: {apiKey: {keys: [{key: first-key}]}}
      backends: [{host: "127.0.0.1:1", policies: {backendAuth: {key: second-key}}}]
    """
    running = gateway(text)
    url = f"http://127.0.0.1:{running.admin}"
    same = headgate("-f", str(running.path), "--diff", url)
    assert (same.returncode, same.stdout, same.stderr) == (0, "no differences\n", "")
    new = tmp_path / "new.yaml"
    new.write_text(running.path.read_text().replace("second-key", "another"))
    other = headgate("-f", str(new), "--diff", url)
    assert (other.returncode, other.stdout) == (3, "~ a secret, or another value that the dump does not show\n")
    status, told = running.fetch(f"{url}/config_dump/same?proof=x")
    assert (status, "a salt of 32" in told) == (400, True)


def test_what_cannot_be_compared_is_an_error(running, tmp_path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text("gateways: {default: {port: none}}\nroutes: [{nam: a}]\n")
    broken = headgate("-f", str(new), "--diff", f"http://127.0.0.1:{running.admin}")
    assert broken.returncode == 1
    new.write_text("gateways: {default: {port: 3000}}\n")
    for url in ("http://127.0.0.1:1", "ftp://x", f"http://127.0.0.1:{running.stats}"):
        done = headgate("-f", str(new), "--diff", url)
        assert done.returncode == 1
        assert done.stderr.startswith(f"headgate: no configuration from {url}: ")
        assert "Traceback" not in done.stderr
    assert headgate("--diff").returncode == 2


def test_all_errors_of_a_file_are_told_at_once(tmp_path) -> None:
    new = tmp_path / "new.yaml"
    new.write_text("gateways:\n  default: {port: none}\nroutes:\n- nam: a\n- policies: {timeout: {requestTimeout: x}}\n")
    done = headgate("-f", str(new), "--validate-only")
    assert done.returncode == 1
    for place in ("gateways.default.port", "routes[0]", "routes[1].policies.timeout"):
        assert place in done.stderr
    assert {f"{new}:{line})" in done.stderr for line in (2, 4, 5)} == {True}
