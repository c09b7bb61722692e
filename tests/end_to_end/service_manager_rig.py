"""A stand-in for systemd: it opens listening sockets, hands them over, and hears what the gateway tells."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.running import PATIENCE

from headgate.net.sockets import ipv6_works

# Runs in the process that becomes the gateway, as systemd's own does between fork and exec.
LAUNCH = """
import json, os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)    # whoever runs the tests may ignore it (nohup)
descriptors, names = json.loads(sys.argv[1])
high = [os.dup(number) for number in descriptors]
for index, number in enumerate(high):
    os.dup2(number, 3 + index)
    os.set_inheritable(3 + index, True)
if descriptors:
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(descriptors)), LISTEN_FDNAMES=":".join(names))
os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "headgate.cli.main", "-f", sys.argv[2]])
"""


def everywhere(port: int) -> socket.socket:
    """As `ListenStream=PORT` of a socket unit."""
    if ipv6_works():
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("0.0.0.0", port))


class Unit:
    """A service and its sockets. `ports` are opened at once, and stay so; start() and stop() are those of the service."""

    def __init__(self, folder: Path, *ports: int) -> None:
        self.folder = folder
        self.config = folder / "config.yaml"
        self.sockets = [everywhere(port) for port in ports]
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(folder / "notify"))
        self.notify.settimeout(PATIENCE)
        self.process: subprocess.Popen[bytes] | None = None
        self.log_path = folder / "log.txt"
        self.status = ""

    def write(self, text: str, settings: str = "", stats: str = "off") -> None:
        new = self.config.with_suffix(".new")
        servers = f'adminAddr: "off", statsAddr: "{stats}", readinessAddr: "off"'
        head = f"config: {{{servers}, workerThreads: 2{settings}}}\n"
        new.write_text(head + text)
        new.rename(self.config)

    def start(self) -> subprocess.Popen[bytes]:
        numbers = [sock.fileno() for sock in self.sockets]
        names = [f"socket{index}" for index in range(len(numbers))]
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, json.dumps([numbers, names]), str(self.config)],
                env={**os.environ, "NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "30000000"},
                pass_fds=numbers,
                stdout=log,
                stderr=log,
            )
        return self.process

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def next(self) -> str:
        """The first line of the next message; its status is kept. Fails when none comes."""
        lines = self.notify.recv(4096).decode().split("\n")
        self.status = next((line.partition("=")[2] for line in lines if line.startswith("STATUS=")), self.status)
        return lines[0]

    def wait(self, line: str) -> None:
        """Wait for a message, and fail if another one but a sign of life comes first."""
        while (found := self.next()) != line:
            assert found == "WATCHDOG=1", f"{found} before {line}: {self.log()[-3000:]}"

    def wait_ready(self, status: str) -> None:
        """Wait until it is ready with a status that ends so."""
        while self.next() != "READY=1" or not self.status.endswith(status):
            pass

    def waiting(self) -> list[str]:
        """What has been told and not been read."""
        found = []
        self.notify.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                found.append(self.notify.recv(4096).decode().split("\n")[0])
        self.notify.settimeout(PATIENCE)
        return found

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for sock in (*self.sockets, self.notify):
            sock.close()


def hello(port: int, body: str = "hello") -> str:
    """A configuration that answers at a port."""
    return (
        f"gateways: {{default: {{port: {port}}}}}\n"
        f"routes: [{{name: a, policies: {{directResponse: {{status: 200, body: {body}}}}}}}]\n"
    )
