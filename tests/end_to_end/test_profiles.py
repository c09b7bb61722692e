"""Profiles of a running gateway, read by `go tool pprof`."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request

import pytest
from tests.end_to_end.asking import ask
from tests.end_to_end.processes import kill
from tests.end_to_end.tracing import wait_for
from tests.headgate.dialect.pprof_rig import read

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies:
    transformations: {request: {set: {x-a: 'request.headers["x"] + "y"'}}}
    directResponse: {status: 200, body: x}
"""


# So much of it is kept that a sample of its bytes finds it.
MANY_ROUTES = CONFIG + "".join(
    f"""- name: r{number}
  matches: [{{path: {{exact: /r{number}}}}}]
  policies:
    transformations: {{request: {{set: {{x-a: 'request.headers["x{number}"] + request.path'}}}}}}
    directResponse: {{status: 200, body: x}}
"""
    for number in range(100)
)


def fetch(running, path: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    request = urllib.request.Request(f"http://127.0.0.1:{running.admin}{path}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


class Load:
    """Requests as fast as they go."""

    def __init__(self, running) -> None:
        self._running = running
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(3)]

    def _run(self) -> None:
        while not self._stop.is_set():
            ask(self._running)

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.mark.timeout(600)
def test_the_cpu_profile_shows_python_and_compiled_code_of_all_processes(gateway, tmp_path) -> None:
    running = gateway(CONFIG, workers=2)
    with Load(running):
        status, fields, data = fetch(running, "/debug/pprof/profile?seconds=3&frequency=200")
    assert status == 200, data
    assert "content-type" not in {name.lower() for name in fields}
    text = read(tmp_path, data, "-raw")
    assert "PeriodType: cpu nanoseconds" in text
    assert "Period: 5000000" in text
    assert "cpu/count" in text
    assert "process:[worker 0]" in text or "process:[worker 1]" in text
    assert "headgate/cli/main.py" in text, "Python frames"
    assert "DownstreamConnection" in text, "compiled frames"
    top = read(tmp_path, data, "-top", "-cum")
    assert "Type: cpu" in top


@pytest.mark.timeout(600)
def test_one_profile_at_a_time(gateway) -> None:
    running = gateway(CONFIG)
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(fetch(running, "/debug/pprof/profile?seconds=2")[0]))
    thread.start()
    found: tuple[int, dict[str, str], bytes] = (0, {}, b"")
    while thread.is_alive() and found[0] != 500:
        found = fetch(running, "/debug/pprof/profile?seconds=1")
    thread.join()
    assert found[0] == 500 or answers == [500]
    if found[0] == 500:
        assert found[2] == b"a profile is already running\n"
        assert answers == [200]


@pytest.mark.timeout(600)
def test_a_client_that_leaves_ends_its_profile(gateway) -> None:
    running = gateway(CONFIG)
    leaving = socket.create_connection(("127.0.0.1", running.admin))
    leaving.sendall(b"GET /debug/pprof/profile?seconds=300 HTTP/1.1\r\nhost: localhost\r\n\r\n")
    wait_for(lambda: fetch(running, "/debug/pprof/profile?seconds=1")[0] == 500)
    leaving.close()
    wait_for(lambda: fetch(running, "/debug/pprof/profile?seconds=1")[0] == 200)
    # Nobody was left stopped.
    assert ask(running).status == 200


@pytest.mark.timeout(600)
def test_the_heap_profile_shows_live_and_all_allocations(gateway, tmp_path) -> None:
    running = gateway(MANY_ROUTES, workers=2, environment={"HEAP_PROFILE_RATE": "4096"})
    for _ in range(20):
        ask(running)
    status, fields, data = fetch(running, "/debug/pprof/heap")
    assert status == 200
    assert "content-type" not in {name.lower() for name in fields}
    assert data[:2] == b"\x1f\x8b"
    raw = read(tmp_path, data, "-raw")
    assert "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]" in raw
    assert "Period: 4096" in raw
    assert {f"process:[{name}]" in raw for name in ("supervisor", "worker 0", "worker 1")} == {True}
    assert "headgate/pipeline/compile.py" in raw, "what the configuration became"
    for kind in ("inuse_space", "alloc_space", "inuse_objects", "alloc_objects"):
        top = read(tmp_path, data, f"-sample_index={kind}", "-top", "-cum", "-nodefraction=0")
        assert f"Type: {kind}" in top
        assert "compile_steps" in top
    memory = json.loads(fetch(running, "/memory")[2])["pprof"]
    assert memory["alloc_space_bytes"] >= memory["inuse_space_bytes"] > 100_000


@pytest.mark.timeout(600)
def test_sampling_can_be_switched_on_and_off_while_it_runs(gateway, tmp_path) -> None:
    running = gateway(CONFIG)
    assert "Samples:\nLocations" in read(tmp_path, fetch(running, "/debug/pprof/heap")[2], "-raw").replace(
        "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes[dflt]\n", ""
    )
    assert json.loads(fetch(running, "/memory")[2])["pprof"] is None
    status, _, text = fetch(running, "/debug/pprof/heap?rate=4096", "POST")
    assert (status, text) == (200, b"one sample for each 4096 bytes allocated\n")
    with Load(running):
        running.wait_log("http.path=/api/x")
    # A worker that takes another's place samples as well.
    kill(running.worker_pids()[0])
    running.wait_log("worker restarted")
    assert "process:[worker 0]" in read(tmp_path, fetch(running, "/debug/pprof/heap")[2], "-raw")
    assert fetch(running, "/debug/pprof/heap?rate=0", "POST")[2] == b"allocations are not sampled\n"
    assert "worker 0" not in read(tmp_path, fetch(running, "/debug/pprof/heap")[2], "-raw")
    for bad in ("1", "x", "-1", "9" * 30, ""):
        assert fetch(running, f"/debug/pprof/heap?rate={bad}", "POST")[0] == 400


def test_a_bad_rate_in_the_environment_ends_the_start(gateway) -> None:
    with pytest.raises(AssertionError, match="HEAP_PROFILE_RATE: expected"):
        gateway(CONFIG, environment={"HEAP_PROFILE_RATE": "often"})
