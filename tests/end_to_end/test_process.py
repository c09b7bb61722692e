"""The process tree: command line, reload, crash, drain."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from tests.end_to_end.processes import kill

# What is tested is of the process: its memory, its frames, its end.
pytestmark = pytest.mark.executed

DIRECT = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies: {directResponse: {status: 200, body: BODY}}
"""
PROXY = """
gateways:
  default: {port: {port}}
routes:
- name: a
  policies: {responseHeaderModifier: {set: {x-generation: "NUMBER"}}}
  backends: [{host: "127.0.0.1:BACKEND"}]
"""


def headgate(*arguments: str, text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_valid_configuration_is_said_to_be_valid() -> None:
    done = headgate("-f", "-", "--validate-only", text="gateways: {default: {port: 3000}}\n")
    assert (done.returncode, done.stdout) == (0, "Configuration is valid!\n")


def test_all_faults_are_told_at_once_with_path_and_line(tmp_path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text("gateways:\n  default: {port: high}\nroutes:\n- nam: x\n  backends: [{host: nowhere}]\n")
    done = headgate("-f", str(path))
    assert done.returncode == 1
    for part in ("gateways.default.port", "bad.yaml:2", "nam", "bad.yaml:4", "host", "bad.yaml:5"):
        assert part in done.stderr


def test_without_a_configuration_there_is_nothing_wrong_with_it() -> None:
    done = headgate("--validate-only")
    assert (done.returncode, done.stdout) == (0, "No local configuration\nConfiguration is valid!\n")


def test_an_unset_variable_ends_the_start() -> None:
    done = headgate("-c", "gateways: {default: {port: 3000}}\nroutes: [{name: '${NO_SUCH_VARIABLE_HERE}'}]")
    assert done.returncode != 0
    assert "environment variable not found" in done.stderr
    assert "NO_SUCH_VARIABLE_HERE" in done.stderr


def test_two_sources_are_refused() -> None:
    done = headgate("-f", "x", "-c", "y")
    assert done.returncode != 0
    assert "only one of --config or --file" in done.stderr


def test_versions_are_printed() -> None:
    assert headgate("-V").stdout.strip().count(".") == 2
    assert '"git_revision"' in headgate("--version").stdout


def test_a_port_in_use_ends_the_start_with_its_number(gateway) -> None:
    first = gateway(DIRECT.replace("BODY", "x"))
    done = headgate(
        "-c",
        f"config: {{adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off'}}\n"
        f"gateways: {{default: {{port: {first.port}}}}}\n",
    )
    assert done.returncode == 1
    assert str(first.port) in done.stderr


def test_a_changed_file_is_taken_up_and_a_broken_one_is_not(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "one"))
    assert running.fetch(running.url)[1] == "one"
    running.write(DIRECT.replace("BODY", "two"))
    running.wait_log("configuration reloaded")
    assert running.fetch(running.url)[1] == "two"
    running.write(DIRECT.replace("BODY", "three") + "wrong: field\n")
    running.wait_log("Failed to reload config")
    assert running.fetch(running.url)[1] == "two"
    assert running.metric("gw_config_synchronized") == 0
    running.write(DIRECT.replace("BODY", "four"))
    running.wait_log("generation=3")
    assert running.fetch(running.url)[1] == "four"
    running.wait_metric("gw_config_synchronized", 1)
    running.wait_metric("gw_config_generation", 3)


def test_ports_come_and_go_with_a_reload(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "one"))
    other = running.spare
    running.write(
        DIRECT.replace("BODY", "one")
        .replace("routes:", f"  second: {{port: {other}}}\nroutes:", 1)
        .replace("- name: a", "- name: a\n  gateways: [default, second]")
    )
    running.wait_log("generation=2")
    assert running.fetch(f"http://127.0.0.1:{other}/")[1] == "one"
    running.write(DIRECT.replace("BODY", "one"))
    running.wait_log("generation=3")
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        try:
            running.fetch(f"http://127.0.0.1:{other}/")
        except OSError:
            break
        time.sleep(0.05)
    else:
        raise AssertionError("the removed port still answers")


class Load:
    """Clients that count answers and losses, with one connection each or one for each request; `pause` between two, in seconds."""

    def __init__(self, port: int, clients: int, *, keep_alive: bool = True, pause: float = 0.0) -> None:
        self._pause = pause
        self.answers = 0
        self.losses: list[str] = []
        self.refused = 0
        self._port = port
        self._headers = {} if keep_alive else {"connection": "close"}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        connection = None
        while not self._stop.is_set():
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
                    connection.connect()
            except ConnectionRefusedError:
                self.refused += 1
                return
            try:
                connection.request("GET", "/hello", headers=self._headers)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200 or b"hello" not in body:
                    self.losses.append(f"status {answer.status}: {body[:80]!r}")
                self.answers += 1
                self._stop.wait(self._pause)
                if answer.will_close:
                    connection.close()
                    connection = None
            except OSError as error:
                self.losses.append(repr(error))
                connection = None
            except http.client.HTTPException as error:
                self.losses.append(repr(error))
                connection = None

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)


@pytest.mark.timeout(600)
def test_a_hundred_reloads_and_a_drain_under_load_lose_no_request(gateway, sample) -> None:
    text = PROXY.replace("BACKEND", str(sample("http_service")))
    running = gateway(text.replace("NUMBER", "0"), workers=2)
    load = Load(running.port, 8, pause=0.03)
    for number in range(1, 101):
        running.write(text.replace("NUMBER", str(number)))
        # Asked for rather than watched: a hundred debounce times would test patience.
        deadline = time.monotonic() + 10
        while running.metric("gw_config_generation") < number + 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        if number % 10 == 0:
            assert not load.losses, load.losses[:3]
    running.wait_metric("gw_config_generation", 101)
    assert running.stop() == 0
    load.stop()
    assert not load.losses, load.losses[:5]
    assert load.answers > 500


@pytest.mark.parametrize("after", ["the first answer", "many"])
def test_a_drain_answers_every_new_connection_or_refuses_it(gateway, after: str) -> None:
    for _ in range(3):
        running = gateway(DIRECT.replace("BODY", "hello"), workers=2)
        load = Load(running.port, 16, keep_alive=False)
        deadline = time.monotonic() + 40
        while load.answers < (1 if after == "the first answer" else 500) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert running.stop() == 0
        load.stop()
        assert not load.losses, load.losses[:5]
        assert load.refused == 16


def test_requests_in_flight_finish_in_a_drain(gateway, upstream) -> None:
    begun, go = threading.Event(), threading.Event()

    def script(connection: socket.socket) -> None:
        connection.recv(65536)
        begun.set()
        go.wait(60)
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nlate\n")

    running = gateway(PROXY.replace("BACKEND", str(upstream(script))).replace("NUMBER", "0"), workers=2)
    found: list[tuple[int, str]] = []
    thread = threading.Thread(target=lambda: found.append(running.fetch(running.url)))
    thread.start()
    assert begun.wait(40)
    assert running.fetch(f"http://127.0.0.1:{running.admin}/quitquitquit", "POST") == (200, "shutdown now\n")
    running.wait_log("draining")
    go.set()
    thread.join()
    assert found == [(200, "late\n")]
    assert running.process.wait(40) == 0


def test_a_worker_that_dies_is_replaced_and_the_other_goes_on(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "hello"), workers=2)
    victim = running.worker_pids()[0]
    kill(victim)
    running.wait_log("worker restarted")
    assert "worker died worker=0 status=-9" in running.log()
    assert victim not in running.worker_pids()
    assert len(running.worker_pids()) == 2
    for _ in range(20):
        assert running.fetch(running.url) == (200, "hello")
    running.wait_metric("gw_worker_restarts_total", 1)


def test_a_template_that_dies_is_replaced_and_its_workers_live_on(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "hello"), workers=2)
    workers = running.worker_pids()
    kill(running.template_pid())
    running.wait_log("template died status=-9")
    assert running.worker_pids() == workers
    assert running.fetch(running.url) == (200, "hello")
    kill(workers[0])
    running.wait_log("worker restarted")
    assert len(running.worker_pids()) == 2
    assert workers[1] in running.worker_pids()
    # Forked from a template that was started with exec: the same in every respect.
    assert set(map(parent, running.worker_pids())) == {running.process.pid}
    for _ in range(20):
        assert running.fetch(running.url) == (200, "hello")


def parent(pid: int) -> int:
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def test_workers_end_when_the_supervisor_is_killed(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "x"), workers=2)
    workers = [*running.worker_pids(), running.template_pid()]
    running.process.kill()
    running.process.wait()
    deadline = time.monotonic() + 40
    while any(alive(pid) for pid in workers):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.02)


@pytest.fixture
def place():
    """A folder with a short path: that of a socket has 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


def test_the_folder_of_a_gateway_that_was_killed_is_removed_by_the_next_start(gateway, place) -> None:
    environment = {"TMPDIR": str(place)}
    text = DIRECT.replace("BODY", "x")
    first = gateway(text, environment=environment)
    [left] = place.glob("headgate-run-*")
    first.process.kill()
    first.process.wait()
    assert left.exists()
    second = gateway(text, environment=environment)
    [own] = place.glob("headgate-run-*")
    assert own != left
    third = gateway(text, environment=environment)
    assert len(list(place.glob("headgate-run-*"))) == 2, "that of a gateway that runs stays"
    assert (second.stop(), third.stop()) == (0, 0)
    assert list(place.glob("headgate-run-*")) == []


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().split()[2] != "Z"
    return False


def test_an_interrupt_drains_and_exits_cleanly(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "x"))
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(40) == 0


def test_a_second_interrupt_ends_it_at_once(gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        running = gateway(
            PROXY.replace("BACKEND", str(silent.getsockname()[1])), settings="connectionTerminationDeadline: 300s"
        )
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            silent.accept()[0].recv(100)
            running.process.send_signal(signal.SIGINT)
            running.wait_log("draining")
            running.process.send_signal(signal.SIGINT)
            assert running.process.wait(40) == 0


def test_a_parent_is_told_when_it_is_ready() -> None:
    off = "config: {adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off', workerThreads: 1}"
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate.cli.main", "-c", off],
        env={**os.environ, "READY_FD": str(writing)},
        pass_fds=(writing,),
    )
    os.close(writing)
    with open(reading, "rb") as file:
        assert file.read() == b"ready\n", "and it is closed"
    process.terminate()
    assert process.wait(40) == 0


def test_a_client_of_the_admin_server_that_does_not_read_keeps_nobody_from_the_end(gateway) -> None:
    running = gateway(DIRECT)
    with socket.create_connection(("127.0.0.1", running.admin)) as sock:
        sock.setblocking(False)
        # The server reads no further once its answers wait for the client.
        with contextlib.suppress(BlockingIOError):
            while True:
                sock.send(b"GET /config_dump HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1000)
        assert running.stop() == 0
    assert "is forced" not in running.log()


def refused(port: int) -> bool:
    """Whether nobody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_a_drain_accepts_for_its_least_time_and_finishes_what_runs(gateway) -> None:
    with socket.create_server(("127.0.0.1", 0)) as slow:
        running = gateway(
            PROXY.replace("BACKEND", str(slow.getsockname()[1])),
            settings="connectionMinTerminationDeadline: 3s\nconnectionTerminationDeadline: 100s",
        )
        with socket.create_connection(("127.0.0.1", running.port)) as client:
            client.sendall(b"GET /first HTTP/1.1\r\nhost: a\r\n\r\n")
            backend = slow.accept()[0]
            running.process.send_signal(signal.SIGTERM)
            running.wait_log("draining")
            while not (refused(running.admin) and refused(running.stats) and refused(running.readiness)):
                time.sleep(0.02)
            with socket.create_connection(("127.0.0.1", running.port)) as second:
                second.sendall(b"GET /second HTTP/1.1\r\nhost: a\r\n\r\n")
                other = slow.accept()[0]
                assert b"/second" in other.recv(1000), "it is still accepted"
                other.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n2")
                assert second.recv(1000).endswith(b"2")
            while not refused(running.port):
                time.sleep(0.05)
            backend.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n1")
            assert client.recv(1000).endswith(b"1")
        assert running.process.wait(40) == 0


OFF = "config: {adminAddr: 'off', statsAddr: 'off', readinessAddr: 'off', workerThreads: 1}"


def test_a_gateway_serves_for_as_long_as_a_command_runs(tmp_path) -> None:
    log = tmp_path / "log"
    done = headgate("-c", OFF, "oneshot", "--output", str(log), "--", "sh", "-c", "echo $PPID; exit 7")
    assert done.returncode == 7, done.stderr
    assert "gateway is ready" in log.read_text()
    deadline = time.monotonic() + 40
    while "stopped" not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)


def test_oneshot_says_what_is_wrong(tmp_path) -> None:
    assert headgate("oneshot").returncode == 2
    assert headgate("oneshot", "--").stderr == "headgate: oneshot needs a command after --\n"
    assert "belong together" in headgate("-c", OFF, "--", "true").stderr
    assert "belong together" in headgate("-c", OFF, "--output", "x").stderr
    broken = headgate("-c", "nonsense: 1", "oneshot", "--", "true")
    assert broken.returncode == 1
    assert "unknown field 'nonsense'" in broken.stderr
    missing = headgate("-c", OFF, "oneshot", "--", "no-such-command-here")
    assert missing.returncode == 127
    assert "headgate: cannot run no-such-command-here: No such file or directory" in missing.stderr
    assert "cannot write /nowhere/x" in headgate("-c", OFF, "oneshot", "--output", "/nowhere/x", "--", "true").stderr
