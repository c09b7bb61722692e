"""A real `headgate` on loopback, with scripted upstreams."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.asking import BASE, Echo, indented
from tests.end_to_end.processes import children_of

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS = 20.0


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Gateway:
    """One process tree. `port` is its traffic port, {port} in the configuration; `spare` is another that is free."""

    def __init__(
        self, folder: Path, text: str, workers: int, environment: dict[str, str], settings: str = ""
    ) -> None:
        self.port, self.admin, self.stats, self.readiness, self.spare = (free_port() for _ in range(5))
        self.path = folder / "config.yaml"
        self.log_path = folder / "log.txt"
        self._workers = workers
        self._settings = textwrap.indent(textwrap.dedent(settings).strip("\n"), "  ")
        self.write(text)
        self._log = self.log_path.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "-f", str(self.path)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )

    def write(self, text: str) -> None:
        """Write the configuration, atomically as editors do."""
        head = textwrap.dedent(
            f"""\
            config:
              workerThreads: {self._workers}
              adminAddr: 127.0.0.1:{self.admin}
              statsAddr: 127.0.0.1:{self.stats}
              readinessAddr: 127.0.0.1:{self.readiness}
            """
        )
        if self._settings:
            head += self._settings + "\n"
        body = textwrap.dedent(text).replace("{port}", str(self.port))
        new = self.path.with_suffix(".new")
        new.write_text(head + body)
        new.rename(self.path)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log()
            with contextlib.suppress(OSError):
                if self.fetch(f"http://127.0.0.1:{self.readiness}/healthz/ready")[0] == 200:
                    return
            time.sleep(0.02)
        raise AssertionError(f"not ready: {self.log()}")

    @staticmethod
    def fetch(url: str, method: str = "GET", **options: object) -> tuple[int, str]:
        """Status and text of one request."""
        request = urllib.request.Request(url, method=method, **options)  # type: ignore[arg-type]
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def wait_log(self, text: str, seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < deadline, f"{text!r} not in {self.log()[-3000:]}"
            time.sleep(0.02)

    def worker_pids(self) -> list[int]:
        return children_of(self.process.pid)

    def metric(self, start: str) -> float:
        """Sum of the samples whose line begins with `start`."""
        _, page = self.fetch(f"http://127.0.0.1:{self.stats}/metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(start))

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """`gateway(text, workers=1, environment={}, settings="")` starts one (`settings`: more of `config`) and waits until it is ready."""
    started: list[Gateway] = []

    def start(
        text: str, workers: int = 1, environment: dict[str, str] | None = None, settings: str = ""
    ) -> Gateway:
        for attempt in range(3):
            folder = tmp_path / f"gateway{len(started)}"
            folder.mkdir()
            found = Gateway(folder, text, workers, environment or {}, settings)
            started.append(found)
            try:
                found.wait_ready()
            except AssertionError:
                # Another program of this machine took a port that was free a moment ago.
                if attempt == 2 or "Address already in use" not in found.log():
                    raise
                continue
            return found
        raise AssertionError("unreachable")

    yield start
    for found in started:
        with contextlib.suppress(subprocess.TimeoutExpired):
            found.stop()
        log = found.log()
        assert "Traceback" not in log, log


@pytest.fixture
def upstream() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """`upstream(script)` listens and runs `script(connection)` in a thread for each connection; gives the port."""
    listeners: list[socket.socket] = []

    def start(script: Callable[[socket.socket], None]) -> int:
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        listeners.append(listener)

        def run(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                script(connection)

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=run, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        # Wakes accept() up, which close() alone does not.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def sample() -> Iterator[Callable[..., int]]:
    """`sample("http_service", ...)` starts a sample server of the package; gives its port."""
    running: list[subprocess.Popen[str]] = []

    def start(module: str, *arguments: str) -> int:
        process = subprocess.Popen(
            [sys.executable, "-m", f"headgate.sample.{module}", *arguments], stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline().split()[1])

    yield start
    for process in running:
        process.terminate()
        process.wait(10)


def raw(port: int, data: bytes, seconds: float = 5.0) -> bytes:
    """What the gateway answers to raw bytes, until it closes or is silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        sock.sendall(data)
        found = b""
        while True:
            try:
                piece = sock.recv(65536)
            except (TimeoutError, ConnectionResetError):
                return found
            if not piece:
                return found
            found += piece


@pytest.fixture
def send_raw() -> Callable[..., bytes]:
    return raw


@pytest.fixture(scope="session")
def echo():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


@pytest.fixture
def policies(gateway, echo):
    def start(text: str, **options: Any):
        return gateway(BASE % (indented(text), echo), **options)

    return start
