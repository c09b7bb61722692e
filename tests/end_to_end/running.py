"""A running `headgate` as tests see it, and a pool of those that serve one test after the other."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests import forked_rig
from tests.end_to_end import over_http2
from tests.end_to_end.processes import children_of, command_line

# How long a test waits for what is sure to come: a busy machine is no fault.
PATIENCE = 60.0
PROGRAM = "headgate.cli.main"
# A variable of the environment that a configuration has in it.
VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")


@functools.cache
def _locks() -> int:
    """A file with a byte for each port, which tests of this user that run at once lock; its descriptor."""
    path = Path(tempfile.gettempdir()) / f"headgate-ports-{os.getuid()}"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@functools.cache
def _ports() -> list[int]:
    """Ports that the kernel gives to nobody who asks for any, in an order of our own."""
    least = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    # Round numbers stand in configurations and in what is printed.
    found = [port for port in range(16_000, least if least > 20_000 else 30_000) if port % 100 and port % 1024]
    random.Random(os.urandom(8)).shuffle(found)
    return found


def free_port() -> int:
    """A port nobody listens on now, and no other test will be given before this process ends."""
    while True:
        port = _ports().pop()
        with contextlib.suppress(OSError), socket.socket() as sock:
            fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            sock.bind(("127.0.0.1", port))
            return port


def traffic_port() -> int:
    """The same, for the clients of a gateway."""
    port = free_port()
    over_http2.PORTS.add(port)
    return port


class Gateway:
    """One process tree. `port` is its traffic port, {port} in the configuration; `spare` is another that is free."""

    def __init__(
        self, folder: Path, text: str, workers: int, environment: dict[str, str], settings: str = "", *, forked: bool = False,
        module: str = PROGRAM,
    ) -> None:
        self.port, self.spare = traffic_port(), traffic_port()
        self.admin, self.stats, self.readiness = (free_port() for _ in range(3))
        self.path = folder / "config.yaml"
        self.log_path = folder / "log.txt"
        self._workers = workers
        self._settings = textwrap.indent(textwrap.dedent(settings).strip("\n"), "  ")
        self.write(text)
        self._log = self.log_path.open("wb")
        self._log_start = 0
        self._counted: dict[str, float] = {}
        # What ends with the test that has the gateway.
        self.at_rest: list[Callable[[], object]] = []
        self._stopping = False
        wanted = {**os.environ, **environment}
        if forked:
            words, named = ["-f", str(self.path)], VARIABLE.findall(text + settings)
            self.process = forked_rig.start(module, words, self._log, self._log, wanted, read_late=named)
            return
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "-f", str(self.path)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env=wanted,
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
        self.put(head + body)

    def put(self, text: str) -> None:
        """Write the whole file: never half of it is there."""
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.rename(self.path)

    def reload(self, text: str) -> None:
        """Write another configuration, and wait until it is in force."""
        before = self.log().count("configuration reloaded")
        self.write(text)
        deadline = time.monotonic() + PATIENCE
        while self.log().count("configuration reloaded") == before:
            assert time.monotonic() < deadline, self.log()[-3000:]
            time.sleep(0.02)

    def wait_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log()
            # A request takes ten times as long as to see that nobody listens yet.
            with contextlib.suppress(OSError), socket.socket() as probe:
                probe.connect(("127.0.0.1", self.readiness))
                if self.fetch(f"http://127.0.0.1:{self.readiness}/healthz/ready")[0] == 200:
                    return
            time.sleep(0.02)
        raise AssertionError(f"not ready: {self.log()}")

    @staticmethod
    def fetch(url: str, method: str = "GET", **options: object) -> tuple[int, str]:
        """Status and text of one request."""
        request = urllib.request.Request(url, method=method, **options)  # type: ignore[arg-type]
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def log(self) -> str:
        """What it has logged since the test has it."""
        return self.log_path.read_bytes()[self._log_start :].decode(errors="replace")

    def wait_log(self, text: str, seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.log():
            assert time.monotonic() < deadline, f"{text!r} not in {self.log()[-3000:]}"
            time.sleep(0.02)

    def wait_log_count(self, text: str, count: int) -> None:
        """Wait until the log has a text so often."""
        self.wait(lambda: self.log().count(text) >= count)

    def wait(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.log()[-3000:]
            time.sleep(0.02)

    def worker_pids(self) -> list[int]:
        """Of the workers that run; the template, from which they are forked, is no worker."""
        return [pid for pid in children_of(self.process.pid) if command_line(pid).startswith("headgate: worker ")]

    def template_pid(self) -> int:
        [pid] = [
            pid for pid in children_of(self.process.pid) if command_line(pid).startswith(("headgate: template",))
        ]
        return pid

    def metric(self, start: str) -> float:
        """Sum of the samples whose line begins with `start`, since the test has the gateway."""
        return sum(
            value - self._counted.get(name, 0.0) for name, value in self._samples().items() if name.startswith(start)
        )

    def wait_metric(self, start: str, value: float) -> None:
        """Wait until metric(start) is `value`."""
        deadline = time.monotonic() + PATIENCE
        while (found := self.metric(start)) != value:
            assert time.monotonic() < deadline, f"{start}: {found}, expected {value}"
            time.sleep(0.02)

    def _samples(self) -> dict[str, float]:
        _, page = self.fetch(f"http://127.0.0.1:{self.stats}/metrics")
        pairs = (line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    # -- for one test after the other ----------------------------------------------------------------------------------
    def rest(self) -> None:
        """Have it forget its configuration, and with it all sessions and processes."""
        while self.at_rest:
            self.at_rest.pop()()
        self._log_start = self.log_path.stat().st_size
        self.port = free_port()
        self.write(NOTHING)

    def rested(self) -> bool:
        """Whether it has."""
        return re.search(rf":{self.port}\b", self.log()) is not None and "configuration reloaded" in self.log()

    def wake(self, text: str) -> None:
        """Serve another configuration on ports of its own."""
        self._log_start = self.log_path.stat().st_size
        self.port, self.spare = traffic_port(), traffic_port()
        self._counted = self._unwatched()
        self.write(text)
        deadline = time.monotonic() + PATIENCE
        while "configuration reloaded" not in self.log():
            assert time.monotonic() < deadline, self.log()
            assert "Failed to reload" not in self.log(), self.log()
            time.sleep(0.02)
        # A gateway with many series forgets those that two configurations have not used: they begin at 0 again.
        there = self._samples()
        self._counted = {name: value for name, value in self._counted.items() if name in there}
        # What was said of the configuration is the test's; it comes before the line that was waited for.
        said = self.log_path.read_bytes()[self._log_start :]
        first = said.find(b"\tconfiguration warning=")
        self._log_start += len(said) if first < 0 else said.rfind(b"\n", 0, first) + 1

    def _unwatched(self) -> dict[str, float]:
        """The samples, once nobody watches any more: who did for the test before would have the first requests of this one."""
        deadline = time.monotonic() + PATIENCE
        while (found := self._samples()).get("gw_trace_watchers"):
            assert time.monotonic() < deadline, "watchers of another test stay"
            time.sleep(0.02)
        return found

    def fit(self) -> bool:
        """Whether another test may have it: nothing of it has ended."""
        return self.process.poll() is None and "worker restarted" not in self.log() and "draining" not in self.log()

    def begin_stop(self) -> None:
        """SIGTERM, once: one that comes while Python itself ends is written about as an ignored exception."""
        if not self._stopping and self.process.poll() is None:
            self._stopping = True
            self.process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self.begin_stop()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


NOTHING = "gateways: {default: {port: {port}}}\n"
Key = tuple[int, str, str]
# While one serves, the others forget their configurations; a change soon after another one is read a quarter of a second late.
FEW = 3
MOST_RESTING = 9


class Pool:
    """Gateways that rest between two tests. What they are started with is the same for both: `key`."""

    def __init__(self, folder: Callable[[], Path], *, forked: bool = True) -> None:
        self._folder, self._forked = folder, forked
        self._resting: list[tuple[Key, Gateway]] = []

    def take(self, text: str, key: Key) -> Gateway:
        """A gateway with this configuration."""
        found = self._rested(key)
        if found is not None:
            self._resting.remove(found)
            found[1].wake(text)
            return found[1]
        workers, environment, settings = key
        for attempt in range(3):
            running = Gateway(self._folder(), text, workers, json.loads(environment), settings, forked=self._forked)
            try:
                running.wait_ready()
            except AssertionError:
                running.process.kill()
                # Another program of this machine took a port that was free a moment ago.
                if attempt == 2 or "already in use" not in running.log():
                    raise
                continue
            return running
        raise AssertionError("unreachable")

    def _rested(self, key: Key) -> tuple[Key, Gateway] | None:
        """One that another test may have, or None where another one is to be started: FEW are enough to take turns."""
        resting = [one for one in self._resting if one[0] == key]
        deadline = time.monotonic() + PATIENCE
        while True:
            found = next((one for one in resting if one[1].rested()), None)
            if found is not None or len(resting) < FEW or time.monotonic() > deadline:
                return found
            time.sleep(0.01)

    def give_back(self, key: Key, running: Gateway) -> None:
        """Let it rest, or stop it."""
        if not running.fit():
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.stop()
            return
        running.rest()
        self._resting.append((key, running))
        if len(self._resting) > MOST_RESTING:
            self._resting.pop(0)[1].stop()

    def close(self) -> None:
        """Stop all of them."""
        for _, running in self._resting:
            running.process.send_signal(signal.SIGTERM)
        for _, running in self._resting:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.stop()
