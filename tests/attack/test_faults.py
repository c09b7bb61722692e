"""What breaks beside the gateway: backends, names, disks, and its own workers (CWE-754, CWE-755; see README.md)."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.attack.conftest import Figures
from tests.attack.exhaustion_rig import connected, timed, until
from tests.attack.recording_rig import PATIENCE, Bystander, Recording
from tests.end_to_end.processes import children_of
from tests.end_to_end.running import Gateway

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


def reset(connection: socket.socket) -> None:
    """End a connection by RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


# What a backend does with a request: bytes that it sends, then how it ends. Then what a client may be told: a status, and whether the body is whole.
# A body that is cut off must not look whole (RFC 9112 section 8).
Fault = tuple[bytes, str, tuple[int, ...], bool]
FAULTS: dict[str, Fault] = {
    "closes without a word": (b"", "close", (502, 503), True),
    "resets without a word": (b"", "reset", (502, 503), True),
    "dies in the status line": (b"HTTP/1.1 20", "close", (502, 503), True),
    "dies in the head": (b"HTTP/1.1 200 OK\r\ncontent-le", "close", (502, 503), True),
    "resets in the head": (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n", "reset", (502, 503), True),
    "dies behind the head": (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", "close", (200, 502), False),
    "dies in the body": (OK[:-2], "close", (200, 502), False),
    "resets in the body": (OK[:-2], "reset", (200, 502), False),
    "dies in a chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel", "close", (200, 502), False),
    "dies between chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", "close", (200, 502), False),
    "dies in the trailers": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx: y", "close", (200, 502), False),
    "says what is no chunk": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n", "close", (200, 502), False),
    "says more than its length": (OK + b"more", "close", (200,), True),
    "says two answers": (OK + OK, "close", (200,), True),
    "speaks another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n", "close", (502,), True),
    "speaks TLS": (bytes.fromhex("15030300020228"), "close", (502,), True),
    "sends noise": (bytes(range(256)) * 40, "close", (502,), True),
    "sends an endless head": (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, "close", (502,), True),
    "sends a long field": (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2_000_000 + b"\r\n\r\n", "close", (502,), True),
    "sends a bad status": (b"HTTP/1.1 999999 X\r\n\r\n", "close", (502,), True),
    "answers in HTTP/0.9": (b"hello", "close", (502,), True),
    "switches unasked": (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nhello", "close", (502,), True),
    "hints and dies": (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 3, "close", (502, 503), True),
    "ends its half and goes on": (OK, "half", (200,), True),
    "ends by closing": (b"HTTP/1.1 200 OK\r\n\r\nhello", "close", (200,), True),
    "says nothing": (b"", "wait", (504,), True),
    "stalls in the head": (b"HTTP/1.1 200 OK\r\n", "wait", (504,), True),
}  # fmt: skip


class Faulty:
    """A backend that does with each request what its path says: `/N` is the fault number N."""

    def __init__(self) -> None:
        self.asked = 0
        self.ended = threading.Event()
        self._faults = list(FAULTS.values())
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more, and stop waiting."""
        self.ended.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                if not (piece := connection.recv(65536)):
                    return
                data += piece
            self.asked += 1
            sent, how, _, _ = self._faults[int(data.split()[1].rpartition(b"/")[2])]
            connection.sendall(sent)
            if how == "half":
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            elif how == "wait":
                self.ended.wait(PATIENCE)
            elif how == "reset":
                time.sleep(0.02)       # what was sent is to arrive first
                reset(connection)


CONFIG = """
gateways:
  default: {port: {port}}
routes:
- name: faults
  matches: [{path: {pathPrefix: /fault}}]
  policies: {timeout: {requestTimeout: 1s}}
  backends: [{host: "127.0.0.1:FAULTY"}]
- {name: refused, matches: [{path: {exact: /refused}}], backends: [{host: "127.0.0.1:1"}]}
- {name: unknown, matches: [{path: {exact: /unknown}}], backends: [{host: "no-such-host.invalid:80"}]}
- {name: endless, matches: [{path: {exact: /endless}}], backends: [{host: "LABEL.invalid:80"}]}
- {name: rest, matches: [{path: {pathPrefix: /bystander}}], backends: [{host: "127.0.0.1:BACKEND"}]}
"""


@pytest.fixture(scope="module")
def faulty() -> Iterator[Faulty]:
    found = Faulty()
    yield found
    found.close()


def config(faulty: Faulty, recording: Recording) -> str:
    return CONFIG.replace("FAULTY", str(faulty.port)).replace("BACKEND", str(recording.port)).replace("LABEL", "a" * 63)


def told(port: int, path: str) -> tuple[int, bool, bytes]:
    """Status, whether the answer is whole, and its body."""
    with connected(port) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 1"):
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), None)
    if b"transfer-encoding: chunked" in lines:
        return int(head[9:12]), body.endswith(b"0\r\n\r\n"), body
    return int(head[9:12]), length is None or length == len(body), body


def test_a_fault_of_a_backend_is_told_and_harms_nobody_else(
    serving: Callable[..., Gateway], faulty: Faulty, recording: Recording, long: bool, figures: Figures
) -> None:
    running = serving(config(faulty, recording))
    [worker] = running.worker_pids()
    wrong, waits = {}, []
    with timed(running.port) as bystander:
        for _ in range(5 if long else 1):
            for at, (name, (_, _, statuses, whole)) in enumerate(FAULTS.items()):
                status, is_whole, body = told(running.port, f"/fault/{at}")
                # What is told with an error of the gateway's own is whole.
                if status not in statuses or is_whole is not (whole or status != 200):
                    wrong[name] = (status, is_whole, body[:60])
                if status == 200 and whole and body.strip(b"5\r\n0") != b"hello" and b"hello" not in body:
                    wrong[name] = (status, is_whole, body[:60])
        waits = sorted(bystander.waits)
    assert not wrong, wrong
    assert running.worker_pids() == [worker]
    figures.add("faults", "backends", f"{len(FAULTS)} ways to die, a bystander beside them", {"longest wait": f"{waits[-1] * 1e3:.0f} ms"})


@pytest.mark.parametrize("path", ["/refused", "/unknown", "/endless"])
def test_a_backend_that_is_not_there(serving: Callable[..., Gateway], faulty: Faulty, recording: Recording, path: str) -> None:
    running = serving(config(faulty, recording))
    for _ in range(3):
        status, whole, body = told(running.port, path)
        assert (status, whole) in ((502, True), (503, True)), body
        assert b"invalid" not in body, "names inside are nobody's business"
    Bystander(running.port).ask()


def test_a_worker_that_is_killed_is_replaced(serving: Callable[..., Gateway], faulty: Faulty, recording: Recording, long: bool, figures: Figures) -> None:
    """Its requests end, no answer goes to somebody else, and the next connection is served."""
    running = serving(config(faulty, recording), workers=2)
    took = []
    for _ in range(10 if long else 2):
        before = running.worker_pids()
        under_way = [connected(running.port) for _ in range(8)]
        for client in under_way:
            client.sendall(b"GET /fault/%d HTTP/1.1\r\nhost: a\r\n\r\n" % list(FAULTS).index("says nothing"))
        began = time.monotonic()
        os.kill(before[0], signal.SIGKILL)
        for client in under_way:
            data = b""
            with contextlib.suppress(ConnectionResetError):
                data = client.recv(65536)
            assert data == b"" or data.startswith(b"HTTP/1.1 504"), data
            client.close()
        bystander = Bystander(running.port)
        bystander.ask()
        bystander.close()
        took.append(time.monotonic() - began)
        until(lambda before=before: len(running.worker_pids()) == 2 and before[0] not in running.worker_pids(), "no new worker")
        until(lambda: running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200, "not ready")
    figures.add("faults", "killed workers", f"{len(took)} times SIGKILL", {"longest wait": f"{max(took) * 1e3:.0f} ms"})


FULL = """
gateways:
  default: {port: {port}}
routes:
- {name: rest, matches: [{path: {pathPrefix: /}}], backends: [{host: "127.0.0.1:BACKEND"}]}
"""


def test_a_full_disk_ends_the_logs_and_not_the_traffic(tmp_path: Path, recording: Recording, long: bool) -> None:
    """Neither the log nor the request log's database may grow any more (RLIMIT_FSIZE: EFBIG as of a full disk)."""
    running = Gateway(tmp_path, FULL.replace("BACKEND", str(recording.port)), 1, {}, f'database: {{url: "sqlite://{tmp_path}/log.db"}}')
    try:
        running.wait_ready()
        bystander = Bystander(running.port)
        bystander.ask()
        written = 'gw_request_log_records_total{outcome="written"}'
        running.wait_metric(written, 1)
        pids = (running.process.pid, *children_of(running.process.pid))
        before = [resource.prlimit(pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY)) for pid in pids]
        size = running.log_path.stat().st_size
        for _ in range(2000 if long else 200):
            bystander.ask()
        assert running.log_path.stat().st_size <= max(size, 1000)
        # Operators see how it is: ports answer, metrics count.
        assert running.fetch(f"http://127.0.0.1:{running.readiness}/healthz/ready")[0] == 200
        count = 2001 if long else 201
        running.wait_metric("gw_requests_total", count)
        assert running.metric(written) == 1
        assert running.metric("gw_worker_restarts_total") == 0
        assert json.loads(running.fetch(f"http://127.0.0.1:{running.admin}/config_dump")[1])["binds"]
        # With room again, records are written, and so are lines.
        for pid, limits in zip(pids, before, strict=True):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        bystander.ask()
        bystander.close()
        until(lambda: running.metric(written) > 1, "nothing is written any more")
        until(lambda: running.log_path.stat().st_size > size, "the log has ended")
    finally:
        assert running.stop() == 0
