"""What a service manager is told, over its socket."""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.server.service_manager import ServiceManager


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.bind(address)
        self.sock.setblocking(False)

    def told(self) -> list[list[str]]:
        """What has come since the last time, as lines."""
        found = []
        while True:
            try:
                found.append(self.sock.recv(4096).decode().split("\n"))
            except BlockingIOError:
                return found


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(str(tmp_path / "notify"))
    yield made
    made.sock.close()


@pytest.fixture
def environ(manager: Manager) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.sock.getsockname(), "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}


def test_the_life_of_a_gateway(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    assert environ == {}, "what is started later is not the service"
    service.ready("serves")
    assert manager.told() == [["READY=1", "STATUS=serves"]]
    before = time.monotonic_ns() // 1000
    with service.reloading(lambda: "serves 2"):
        [[reloading, usec, status]] = manager.told()
    assert reloading == "RELOADING=1"
    assert before <= int(usec.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000
    assert status.startswith("STATUS=")
    assert manager.told() == [["READY=1", "STATUS=serves 2"]]
    service.alive()
    assert manager.told() == [["WATCHDOG=1"]]
    service.stopping()
    assert manager.told()[0][0] == "STOPPING=1"


def test_another_process_is_the_service_from_then_on(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    assert service.listens
    service.hand_over(4711)
    assert manager.told() == [["MAINPID=4711"]]
    service.alive()
    service.stopping()
    assert manager.told() == []
    assert not service.listens
    # It is watched too, and not by the number of this process.
    assert ServiceManager(service.environment).listens
    assert ServiceManager({}).environment == {}


def test_of_two_reloads_at_once_the_last_end_counts(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    with service.reloading(lambda: "outer"):
        with service.reloading(lambda: "inner"):
            pass
        assert [lines[0] for lines in manager.told()] == ["RELOADING=1", "RELOADING=1"]
    assert [lines[0] for lines in manager.told()] == ["READY=1"]


def test_a_reload_that_fails_ends_too(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    with pytest.raises(ZeroDivisionError), service.reloading(lambda: "as before"):
        raise ZeroDivisionError
    assert manager.told()[-1] == ["READY=1", "STATUS=as before"]


def test_a_gateway_that_stops_is_never_ready_again(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    with service.reloading(lambda: ""):
        service.stopping()
    with service.reloading(lambda: ""):
        pass
    assert [lines[0] for lines in manager.told()] == ["RELOADING=1", "STOPPING=1"]


@pytest.mark.parametrize("changes", [{"WATCHDOG_USEC": ""}, {"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}])
def test_without_a_watchdog_there_are_no_signs_of_life(manager: Manager, environ: dict[str, str], changes: dict[str, str]) -> None:
    ServiceManager({**environ, **changes}).alive()
    assert manager.told() == []


def test_a_watchdog_without_a_process_is_for_all(manager: Manager, environ: dict[str, str]) -> None:
    del environ["WATCHDOG_PID"]
    ServiceManager(environ).alive()
    assert manager.told() == [["WATCHDOG=1"]]


def test_a_watchdog_that_is_too_short_is_told(environ: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headgate.supervisor"):
        ServiceManager({**environ, "WATCHDOG_USEC": "1000000"})
    assert "shorter" in caplog.text


def test_an_abstract_name() -> None:
    name = f"headgate-{os.getpid()}-{time.monotonic_ns()}"
    manager = Manager(f"\0{name}")
    ServiceManager({"NOTIFY_SOCKET": f"@{name}"}).ready("")
    assert manager.told()[0][0] == "READY=1"
    manager.sock.close()


@pytest.mark.parametrize("address", ["vsock:2:1234", "/nowhere/at/all"])
def test_a_manager_that_cannot_be_reached_is_told_once(address: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "headgate.supervisor"):
        service = ServiceManager({"NOTIFY_SOCKET": address})
        service.ready("")
        service.stopping()
    assert [record.message.split()[0] for record in caplog.records] == ["NOTIFY_SOCKET"]


def test_a_manager_that_does_not_read_holds_nobody(manager: Manager, environ: dict[str, str]) -> None:
    service = ServiceManager(environ)
    for _ in range(5000):
        service.alive()
    assert ["WATCHDOG=1"] in manager.told()
