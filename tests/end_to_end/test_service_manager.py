"""A gateway under a service manager: what it tells, the sockets that it is lent, and the watchdog."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.end_to_end.processes import children_of, command_line
from tests.end_to_end.running import PATIENCE, free_port
from tests.end_to_end.service_manager_rig import Unit, hello

Units = Callable[..., Unit]


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[Units]:
    made: list[Unit] = []

    def make(*ports: int) -> Unit:
        made.append(Unit(tmp_path, *ports))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ask(port: int) -> str:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    client.request("GET", "/")
    return client.getresponse().read().decode()


def open_sockets(pid: int) -> set[int]:
    """The inodes of a process's sockets."""
    found = set()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed since
            match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(path))
            found |= {int(match[1])} if match else set()
    return found


def test_start_reload_and_stop_are_told(unit: Units) -> None:
    port = free_port()
    one = unit()
    one.write(hello(port))
    process = one.start()
    one.wait("READY=1")
    assert one.status == "serves 1 ports with 2 workers, configuration 1"
    assert ask(port) == "hello"
    one.write(hello(port, "again"))
    one.wait("RELOADING=1")
    one.wait_ready("configuration 2")
    assert ask(port) == "again"
    process.send_signal(signal.SIGHUP)
    one.wait("RELOADING=1")
    one.wait_ready("configuration 2")
    one.write("routes: [{nonsense: 1}]\n")
    one.wait_ready("configuration 2; the newest configuration could not be loaded")
    process.send_signal(signal.SIGTERM)
    while one.next() != "STOPPING=1":
        pass
    assert process.wait(PATIENCE) == 0


def test_a_lent_socket_is_served_and_stays_with_the_manager(unit: Units) -> None:
    """One of a port, and one of the stats server."""
    port, stats = free_port(), free_port()
    one = unit(port, stats)
    one.write(hello(port), stats=f"[::]:{stats}")

    def asked() -> list[socket.socket]:
        clients = [socket.create_connection(("127.0.0.1", each), timeout=PATIENCE) for each in (port, stats)]
        for client in clients:
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        return clients

    def check(clients: list[socket.socket]) -> None:
        body, page = (client.makefile("rb").read() for client in clients)
        assert body.endswith(b"hello")
        assert b"gw_downstream_connections_total" in page
        for client in clients:
            client.close()

    early = asked()
    process = one.start()
    one.wait("READY=1")
    check(early)        # who came before the gateway is served
    assert ask(port) == "hello"
    assert one.stop() == 0
    # Nobody accepts, and still no client is refused: the next process serves them.
    late = asked()
    assert one.start() is not process
    check(late)


def test_a_port_may_leave_the_configuration_and_come_back(unit: Units) -> None:
    port, other = free_port(), free_port()
    one = unit(port)
    one.write(hello(port))
    one.start()
    one.wait("READY=1")
    one.write(hello(other, "other"))
    one.wait_ready("configuration 2")
    assert ask(other) == "other"
    waiting = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    waiting.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    one.write(hello(port, "back"))
    one.wait_ready("configuration 3")
    assert waiting.makefile("rb").read().endswith(b"back")
    waiting.close()


def test_a_socket_that_no_port_wants_is_refused(unit: Units) -> None:
    port, strange = free_port(), free_port()
    one = unit(port, strange)
    one.write(hello(port))
    assert one.start().wait(PATIENCE) == 1
    assert f":{strange} (socket1), where the configuration does not listen" in one.log()
    assert one.log().count("headgate: cannot start") == 1
    assert one.waiting() == []


def test_children_get_no_sockets_that_are_not_theirs(unit: Units) -> None:
    port = free_port()
    one = unit(port)
    one.write(hello(port))
    process = one.start()
    one.wait("READY=1")
    inode = os.fstat(one.sockets[0].fileno()).st_ino
    children = {pid: command_line(pid) for pid in children_of(process.pid)}
    [template] = [pid for pid, line in children.items() if line.startswith("headgate: template")]
    workers = [pid for pid, line in children.items() if line.startswith("headgate: worker")]
    assert len(workers) == 2
    assert inode not in open_sockets(template)
    assert all(inode in open_sockets(pid) for pid in workers)


def test_signs_of_life_end_when_no_worker_answers(unit: Units) -> None:
    port = free_port()
    one = unit()
    one.write(hello(port), ", workerHeartbeatTimeout: 0s")
    process = one.start()
    one.wait("READY=1")
    one.wait("WATCHDOG=1")
    workers = [pid for pid in children_of(process.pid) if command_line(pid).startswith("headgate: worker")]
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + PATIENCE
        # A busy machine may have made one silent before, that was back since.
        while one.log().count("worker does not respond") - one.log().count("worker responds again") < len(workers):
            assert time.monotonic() < deadline, one.log()[-3000:]
            time.sleep(0.02)
        one.waiting()
        # The supervisor looks once a second; whatever it says in three is heard.
        end = time.monotonic() + 3.0
        while time.monotonic() < end:
            assert "WATCHDOG=1" not in one.waiting()
            time.sleep(0.05)
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)
    one.wait("WATCHDOG=1")
    assert ask(port) == "hello"
