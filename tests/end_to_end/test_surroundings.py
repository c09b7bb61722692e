"""What a process finds around it: closed or stalled streams, few descriptors, signals, workers that die in a reload."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.processes import kill
from tests.end_to_end.running import PATIENCE, Gateway, free_port

DIRECT = """
gateways: {default: {port: {port}}}
routes: [{policies: {directResponse: {status: 200, body: BODY}}}]
"""
GET = b"GET /%s HTTP/1.1\r\nhost: a.test\r\n\r\n"


class Shelled:
    """A gateway that a shell starts, as `exec "$@"` with what surrounds it in `command`."""

    def __init__(self, folder: Path, command: str, **options: object) -> None:
        self.port, admin, stats, readiness = (free_port() for _ in range(4))
        self.log_path = folder / "log"
        path = folder / "config.yaml"
        path.write_text(
            f"config: {{workerThreads: 1, adminAddr: '127.0.0.1:{admin}', statsAddr: '127.0.0.1:{stats}', "
            f"readinessAddr: '127.0.0.1:{readiness}'}}\n"
            + DIRECT.replace("{port}", str(self.port)).replace("BODY", "on")
        )
        words = ["sh", "-c", command, "sh", sys.executable, "-m", "headgate.cli.main", "-f", str(path)]
        self.process = subprocess.Popen(words, env={**os.environ, "LOG": str(self.log_path)}, **options)  # type: ignore[call-overload]

    def ask(self) -> str:
        """What it answers as soon as it does."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process.poll() is None
            with contextlib.suppress(OSError):
                return Gateway.fetch(f"http://127.0.0.1:{self.port}/")[1]
            time.sleep(0.05)
        raise AssertionError("it does not answer")

    def end(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.status()

    def status(self) -> int:
        """The exit status, once it ends; AssertionError with its log if it does not."""
        try:
            return int(self.process.wait(PATIENCE))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end:\n{self.log_path.read_text()}") from None


@pytest.fixture(autouse=True)
def hangups() -> Iterator[None]:
    """Have processes that are started here hear of hangups, also where the tests themselves run under nohup."""
    before = signal.signal(signal.SIGHUP, lambda _number, _frame: None)  # a handler of ours ends with exec, SIG_IGN does not
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def shelled(tmp_path: Path) -> Iterator[Callable[..., Shelled]]:
    """`shelled(command, **options of Popen)` starts a gateway in a shell."""
    started: list[Shelled] = []

    def start(command: str, **options: object) -> Shelled:
        started.append(Shelled(tmp_path, command, **options))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_it_starts_without_standard_streams(shelled: Callable[..., Shelled], closed: str) -> None:
    running = shelled(f'exec "$@" {closed}', stdout=subprocess.DEVNULL)
    assert running.ask() == "on"
    assert running.end() == 0


@pytest.mark.parametrize("full", ["/dev/full", "a pipe that nobody reads"])
def test_a_log_that_takes_no_more_stops_nothing(shelled: Callable[..., Shelled], full: str) -> None:
    reader, writer = os.pipe() if full != "/dev/full" else (-1, os.open(full, os.O_WRONLY))
    try:
        running = shelled('exec "$@"', stdout=writer)
        assert running.ask() == "on"
        with socket.create_connection(("127.0.0.1", running.port), timeout=10) as sock:
            for _ in range(40):
                # 8 KiB of log each time, and a pipe holds 64.
                sock.sendall(GET % (b"a" * 4000) * 2)
                seen = b""
                while seen.count(b"\r\n\r\non") < 2:
                    piece = sock.recv(65536)
                    assert piece
                    seen += piece
        assert running.end() == 0
    finally:
        for descriptor in (reader, writer):
            if descriptor >= 0:
                os.close(descriptor)


def test_clients_beyond_the_descriptors_are_refused_and_the_log_says_so(shelled: Callable[..., Shelled]) -> None:
    running = shelled('ulimit -n 64; exec "$@" >"$LOG"')
    assert running.ask() == "on"
    with contextlib.ExitStack() as stack:
        answers = []
        for _ in range(60):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=10))
            with contextlib.suppress(OSError):
                sock.sendall(GET % b"")
                answers.append(sock.recv(4096))
        served = [answer for answer in answers if answer.startswith(b"HTTP/1.1 200 ")]
        assert 20 <= len(served) < 60
        assert {answer for answer in answers if answer not in served} <= {b""}
    assert running.ask() == "on"
    assert running.end() == 0
    assert "client connections refused: too many are open" in running.log_path.read_text()


def test_a_hangup_reads_the_configuration(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "one"))
    running.path.write_text(running.path.read_text().replace("body: one", "body: [broken"))
    running.wait_log("Failed to reload config")
    failures = running.log().count("Failed to reload config")
    running.process.send_signal(signal.SIGHUP)      # the file is as it was: nothing else has it read again
    deadline = time.monotonic() + PATIENCE
    while running.log().count("Failed to reload config") == failures:
        assert time.monotonic() < deadline, running.log()
        time.sleep(0.02)
    running.write(DIRECT.replace("BODY", "two"))
    running.process.send_signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")
    assert running.fetch(running.url)[1] == "two"


def test_a_file_that_is_being_written_in_place_stops_nothing(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "one"))
    text = running.path.read_text()
    with running.path.open("w") as stream:
        running.wait_log("the configuration is empty")
        assert running.fetch(running.url)[1] == "one"
        stream.write(text.replace("body: one", "body: two"))
    running.wait_log("configuration reloaded")
    assert running.fetch(running.url)[1] == "two"


def test_a_terminal_that_goes_away_ends_it_in_order(shelled: Callable[..., Shelled]) -> None:
    ours, theirs = pty.openpty()
    running = shelled('exec "$@" >"$LOG"', stdin=theirs, start_new_session=True)
    os.close(theirs)
    try:
        assert running.ask() == "on"
        running.process.send_signal(signal.SIGHUP)
        assert running.status() == 0
        assert "draining reason=SIGHUP" in running.log_path.read_text()
    finally:
        os.close(ours)


def handing_over(supervisor: int) -> bool:
    """Whether a configuration is on its way to the workers."""
    found = []
    for link in Path(f"/proc/{supervisor}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(link.readlink()))
    return any("headgate-config" in name for name in found)


def test_a_worker_that_dies_in_a_reload_does_not_cost_the_new_configuration(gateway) -> None:
    running = gateway(DIRECT.replace("BODY", "one"), workers=2)
    victim = running.worker_pids()[0]
    # It cannot answer, so that the reload waits for it when it dies.
    os.kill(victim, signal.SIGSTOP)
    running.write(DIRECT.replace("BODY", "two"))
    waited = time.monotonic() + 10
    while not handing_over(running.process.pid):
        assert time.monotonic() < waited
        time.sleep(0.02)
    kill(victim)
    running.wait_log("configuration reloaded")
    running.wait_log("worker restarted")
    assert "a worker died during a reload" in running.log()
    assert "Failed to reload config" not in running.log()
    assert "worker died worker=0 status=-9" in running.log() or "worker died worker=1 status=-9" in running.log()
    assert {running.fetch(running.url)[1] for _ in range(8)} == {"two"}
