"""What tests of exhaustion share: a backend with much to say, a bystander who is timed, and the memory of workers."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.attack.recording_rig import PATIENCE, Bystander

PIECE = b"x" * 65536


class Plenty:
    """Answers `/big/N` with N MiB, `/bomb` with some bytes that are 64 MiB unpacked, and everything else with its target."""

    def __init__(self, bomb: bytes = b"") -> None:
        self.bomb = bomb
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more."""
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
        with connection, contextlib.suppress(OSError), connection.makefile("rb") as stream:
            while line := stream.readline():
                target, length = line.split()[1], 0
                while (field := stream.readline()) not in (b"\r\n", b""):
                    if field.lower().startswith(b"content-length:"):
                        length = int(field.split(b":")[1])
                while length > 0 and (data := stream.read(min(length, 65536))):
                    length -= len(data)
                self._answer(connection, target)

    def _answer(self, connection: socket.socket, target: bytes) -> None:
        if target.startswith(b"/big/"):
            count = int(target.rpartition(b"/")[2]) * 16
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (count * len(PIECE)))
            for _ in range(count):
                connection.sendall(PIECE)
        elif b"/chat/completions" in target:
            head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n"
            connection.sendall(head % len(self.bomb) + self.bomb)
        else:
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(target), target))


def memory_mib(pid: int, name: str = "VmHWM") -> float:
    """A figure of /proc/PID/status in MiB: the most resident memory so far, or another one."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None, name
    return int(found[1]) / 1024


def forget_peak(pid: int) -> None:
    """The most resident memory is counted anew (proc(5): clear_refs)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


class Timed:
    """A bystander who asks again and again. `waits`: seconds for each answer."""

    def __init__(self, port: int) -> None:
        self.waits: list[float] = []
        self.fault: BaseException | None = None
        self._bystander = Bystander(port)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            while not self._ended.is_set():
                self.waits.append(self._bystander.ask())
                self._ended.wait(0.005)
        except BaseException as error:
            self.fault = error

    def close(self) -> None:
        """End; whatever went wrong is raised here."""
        self._ended.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "an answer has not come"
        if self.fault is not None:
            raise self.fault
        self._bystander.close()


@contextlib.contextmanager
def timed(port: int) -> Iterator[Timed]:
    """A bystander for the time of a block."""
    found = Timed(port)
    try:
        yield found
    finally:
        found.close()


def connected(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return client


def last_answers(client: socket.socket, least: int) -> int:
    """Read until so many answers have come or the connection ends; how many have."""
    found = 0
    with contextlib.suppress(ConnectionResetError, TimeoutError):
        while found < least and (data := client.recv(1 << 20)):
            found += data.count(b"HTTP/1.1 ")
    return found


def until(condition: object, what: str) -> None:
    """Wait until `condition()` holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
