"""A real `headgate` on loopback, with scripted upstreams."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests import forked_rig
from tests.end_to_end import over_http2
from tests.end_to_end.asking import BASE, Echo, indented
from tests.end_to_end.llm_rig import starter
from tests.end_to_end.provider_stand_in import StandIn
from tests.end_to_end.running import Gateway, Key, Pool, free_port

__all__ = ["Gateway", "free_port"]

# A process that ends with one of these signals has broken its memory. It is started again, so a client may not have noticed.
FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
FAULT = re.compile(rf"died\b.*\bstatus=-(?:{'|'.join(str(int(one)) for one in FAULTS)})\b")

if over_http2.WANTED:
    over_http2.speak()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items if over_http2.WANTED else ():
        one = item.get_closest_marker("http1")
        if one is not None:
            item.add_marker(pytest.mark.skip(reason=one.kwargs["reason"]))


@pytest.fixture(scope="session")
def resting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """Gateways between two tests that are marked `warm`."""
    found = Pool(lambda: tmp_path_factory.mktemp("gateway"))
    yield found
    found.close()


@pytest.fixture
def gateway(request: pytest.FixtureRequest, resting: Pool, tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """`gateway(text, workers=1, environment={}, settings="")` starts one (`settings`: more of `config`) and waits until it is ready.

    In modules marked `warm` it may have served other tests before, unless a test is marked `cold`.
    """
    warm = request.node.get_closest_marker("warm") and not request.node.get_closest_marker("cold")
    forked = request.node.get_closest_marker("executed") is None
    fresh = Pool(lambda: Path(tempfile.mkdtemp(prefix="gateway", dir=tmp_path)), forked=forked)
    started: list[tuple[Key, Gateway]] = []

    def start(
        text: str, workers: int = 1, environment: dict[str, str] | None = None, settings: str = ""
    ) -> Gateway:
        key = (workers, json.dumps(environment or {}), settings)
        found = (resting if warm else fresh).take(text, key)
        started.append((key, found))
        return found

    yield start
    logs = [found.log() for _, found in started]
    stopped = [] if warm else [found for _, found in started]
    for found in stopped:
        with contextlib.suppress(OSError):
            found.begin_stop()
    for key, found in started:
        if found in stopped:
            with contextlib.suppress(subprocess.TimeoutExpired):
                found.stop()
            logs.append(found.log())
        else:
            resting.give_back(key, found)
    for log in logs:
        assert "Traceback" not in log, log
        assert FAULT.search(log) is None, log


class ScriptedSocket(socket.socket):
    """A peer's side of a connection. Reading on behind the end raises: a script that loops would keep a processor busy."""

    ended = False

    def recv(self, *arguments: int) -> bytes:
        data = super().recv(*arguments)
        if not data and self.ended:
            raise ConnectionResetError("the script reads on behind the end")
        self.ended = not data
        return data


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
                scripted = ScriptedSocket(fileno=connection.detach())
                threading.Thread(target=run, args=(scripted,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return int(listener.getsockname()[1])

    yield start
    for listener in listeners:
        # Wakes accept() up, which close() alone does not.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@pytest.fixture
def stand_in() -> Iterator[Callable[..., StandIn]]:
    """`stand_in(*answers)` starts an LLM provider."""
    yield from starter()


@contextlib.contextmanager
def samples() -> Iterator[Callable[..., int]]:
    """A function that starts sample servers of the package, which end with the block; it gives their ports."""
    running: list[Any] = []

    def start(module: str, *arguments: str) -> int:
        process = forked_rig.start(f"headgate.sample.{module}", arguments, subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        return int(process.stdout.readline().split()[1])

    yield start
    for process in running:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="session")
def lasting_sample() -> Iterator[Callable[..., int]]:
    """The same for servers that remember nothing: those with the same arguments are one."""
    with samples() as start:
        yield functools.cache(start)


@pytest.fixture
def sample(lasting_sample: Callable[..., int]) -> Iterator[Callable[..., int]]:
    """`sample("http_service", ...)` starts a sample server of the package; gives its port."""
    with samples() as start:
        yield lambda module, *arguments: (start if module == "mcp_server" else lasting_sample)(module, *arguments)


def raw(port: int, data: bytes, seconds: float = 30.0) -> bytes:
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


@pytest.fixture
def processor() -> Iterator[Any]:
    """An external processor."""
    from tests.end_to_end.ext_proc_rig import ProcessorPeer  # grpcio: only where it is asked for

    found = ProcessorPeer()
    yield found
    found.stop()


@pytest.fixture
def backend() -> Iterator[Any]:
    """A backend that reads and writes bodies of any kind."""
    from tests.end_to_end.ext_proc_rig import BodyBackend

    found = BodyBackend()
    yield found
    found.stop()
