"""Two releases of a gateway, what its clients do meanwhile, and processes that nobody is the parent of."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import ssl
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.end_to_end.gwctl_rig import gwctl
from tests.end_to_end.provider_stand_in import StandIn, chunk
from tests.end_to_end.running import PATIENCE, Gateway

SCRIPT = '#!/bin/sh\nRELEASE={name} exec {python} -m headgate.cli.main "$@"\n'


class Releases:
    """A program of which one of several releases is installed. It answers with its name where the file says $RELEASE."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.program = folder / "headgate"
        self.install("old")

    @property
    def environment(self) -> dict[str, str]:
        return {"HEADGATE_PROGRAM": str(self.program), "RELEASE": "old"}

    def install(self, name: str, text: str = SCRIPT) -> None:
        path = self._folder / name
        path.write_text(text.format(name=name, python=sys.executable))
        path.chmod(0o755)
        link = self._folder / "link"
        link.symlink_to(path)
        link.rename(self.program)


class Held:
    """A provider's stream that says one word, and the rest when it is told to."""

    def __init__(self) -> None:
        self.go = threading.Event()

    def __call__(self, stand_in: StandIn, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(chunk("first "))
            handler.wfile.flush()
            self.go.wait(4 * PATIENCE)
            handler.wfile.write(chunk("last") + chunk(None, "stop") + b"data: [DONE]\n\n")


# An idle connection may be closed at any time (RFC 9112 section 9.5); a GET is then sent again.
CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


class Load:
    """Clients that ask without a pause, half of them with a connection for each request. `failures`: what went wrong.
    `context`: over TLS."""

    def __init__(self, port: int, clients: int = 4, context: ssl.SSLContext | None = None) -> None:
        self._port, self._context = port, context
        self._end = threading.Event()
        self.answers = [0] * clients
        self.failures: list[str] = []
        self._threads = [threading.Thread(target=self._ask, args=(index,)) for index in range(clients)]
        for thread in self._threads:
            thread.start()

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        return http.client.HTTPSConnection("localhost", self._port, timeout=PATIENCE, context=self._context)

    def _ask(self, index: int) -> None:
        connection, used = self._connection(), False
        while not self._end.is_set():
            try:
                connection.request("GET", "/release", headers={"connection": "close"} if index % 2 else {})
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status != 200 or text not in ("old", "new"):
                    self.failures.append(f"{answer.status} {text}")
                used = not answer.will_close
                self.answers[index] += 1
            except CLOSED as error:
                if not used:
                    self.failures.append(repr(error))
                used = False
                connection.close()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                return

    def go_on(self, count: int = 5) -> None:
        """Return when each client has been answered so often from now on."""
        wanted = [answers + count for answers in self.answers]
        until(lambda: all(now >= then for now, then in zip(self.answers, wanted, strict=True)) or self.failures)

    def stop(self) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()


def until(condition: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "never"
        time.sleep(0.02)


def runs(pid: int) -> bool:
    """Whether a process has not ended; whoever adopted it may not have noticed yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def stop(pid: int) -> None:
    """End a gateway and wait for it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    try:
        until(lambda: not runs(pid))
    except AssertionError:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        raise


@pytest.fixture
def releases(tmp_path: Path) -> Releases:
    return Releases(tmp_path)


@pytest.fixture
def successors() -> Iterator[list[int]]:
    """Process ids that are to be ended."""
    found: list[int] = []
    yield found
    for pid in found:
        stop(pid)


def served(gateway: Gateway) -> str:
    with urllib.request.urlopen(f"{gateway.url}/release", timeout=60) as answer:
        return str(answer.read().decode())


def ctl(gateway: Gateway, successors: list[int]) -> int:
    """Upgrade with the operator's tool; the process id of the new process."""
    done = gwctl("proxy", "upgrade", "-p", str(gateway.admin))
    assert done.returncode == 0, done.stderr + gateway.log()[-3000:]
    match = re.match(r"process (\d+) serves now", done.stdout)
    assert match, done.stdout
    successors.append(int(match[1]))
    return successors[-1]


def signalled(gateway: Gateway, pid: int, successors: list[int]) -> int:
    """The same with a signal to the process that serves."""
    before = gateway.log().count("upgraded")
    os.kill(pid, signal.SIGUSR2)
    gateway.wait_log_count("upgraded", before + 1)
    successors.append(int(re.findall(r"upgraded.*?\bpid=(\d+)", gateway.log())[-1]))
    return successors[-1]
