"""The command of a new process, and who would mistake the end of the old one."""

from __future__ import annotations

import asyncio
import os
import socket
import sys

import pytest

from headgate.admin.running import UpgradeRefused
from headgate.server import handover, successor
from headgate.server.handover import HandedSocket, Handover
from headgate.server.successor import PROGRAM_VARIABLE, Successor, command, obstacle

NOTHING = Handover([], b"k", (1, b"s"))


def test_the_command_is_that_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROGRAM_VARIABLE, raising=False)
    monkeypatch.setattr(sys, "orig_argv", ["python3", "-P", "/usr/bin/headgate", "-f", "a.yaml"])
    assert command() == [sys.executable, "-P", "/usr/bin/headgate", "-f", "a.yaml"]
    monkeypatch.setattr(sys, "argv", ["/somewhere/else", "-f", "a.yaml"])
    monkeypatch.setenv(PROGRAM_VARIABLE, "/opt/headgate")
    assert command() == ["/opt/headgate", "-f", "a.yaml"]


def test_who_waits_for_this_process_is_in_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"SYSTEMD_EXEC_PID": str(os.getpid())}
    # A process that runs tests ends with its parent (tests/forked_run.py).
    monkeypatch.setattr(successor, "ends_with_parent", lambda: False)
    assert obstacle({}, False) == ""
    assert obstacle({"SYSTEMD_EXEC_PID": "1"}, False) == ""
    assert obstacle(own, True) == ""
    assert "Type=notify" in obstacle(own, False)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    assert "process 1 of a container" in obstacle({}, True)
    monkeypatch.setattr(successor, "ends_with_parent", lambda: True)
    assert "that started it" in obstacle({}, True)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("exit 4", r"ended before it served \(exit status 4\)"),
        # A channel that closes with something unread in it is reset.
        ('head -c 1 <&$HEADGATE_UPGRADE_FD >/dev/null; printf %s "{\\"refused\\": \\"because\\"}" >&$HEADGATE_UPGRADE_FD', "^because$"),
        ('printf %s "{\\"ready\\": 1}" >&$HEADGATE_UPGRADE_FD; sleep 600', "is invalid: KeyError"),
        ('printf %s nonsense >&$HEADGATE_UPGRADE_FD; sleep 600', "ended before it served"),
    ],
)
def test_why_a_new_process_does_not_serve(monkeypatch: pytest.MonkeyPatch, program: str, why: str) -> None:
    monkeypatch.setattr(successor, "command", lambda: ["/bin/bash", "-c", program])
    monkeypatch.setattr(successor, "STATUS_LOOKS", 6000 if "exit" in program or "refused" in program else 1)

    async def main() -> None:
        begun = Successor.start(NOTHING, {"PATH": "/usr/bin:/bin"})
        with pytest.raises(UpgradeRefused, match=why):
            await begun.ready()
        assert begun.process.wait(60) is not None

    asyncio.run(main())


# A new process that is read from after its start, and serves at many ports.
READER = """
import json, os, socket, sys
from headgate.server.handover import receive_handover
channel = socket.socket(fileno=int(os.environ["HEADGATE_UPGRADE_FD"]))
names = [one.name for one in receive_handover(channel).sockets]
channel.send(json.dumps({"taken": [name[:8] for name in names], "more": True}).encode())
channel.send(json.dumps({"ready": os.getpid(), "taken": ["last"]}).encode())
channel.recv(1024)
"""


def test_more_ports_than_a_packet_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel does not hold waits for the reader; what the other end says may come in several packets."""
    monkeypatch.setattr(handover, "MOST_DESCRIPTORS", 1)
    monkeypatch.setattr(successor, "command", lambda: [sys.executable, "-c", READER])
    names = [f"{n:08}".ljust(50_000) for n in range(20)]

    async def main(sock: socket.socket) -> None:
        given = Handover([HandedSocket("port", name, sock) for name in names], b"k", (1, b"s"))
        begun = Successor.start(given, {})
        ready = await begun.ready()
        assert ready.pid == begun.process.pid
        assert ready.taken == {name[:8] for name in names} | {"last"}
        begun.go()
        assert begun.process.wait(60) == 0

    with socket.socket() as sock:
        asyncio.run(main(sock))


# A new process that hands back before it has read all.
REFUSING = """
import json, os, socket
channel = socket.socket(fileno=int(os.environ["HEADGATE_UPGRADE_FD"]))
channel.recv(65536)
channel.send(json.dumps({"refused": "unexpected responseat"}).encode())
"""


def test_why_it_refuses_is_known_though_it_has_not_read_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "MOST_DESCRIPTORS", 1)
    monkeypatch.setattr(successor, "command", lambda: [sys.executable, "-c", REFUSING])

    async def main(sock: socket.socket) -> None:
        begun = Successor.start(Handover([HandedSocket("port", f"{n:08}", sock) for n in range(3)], b"k", (1, b"s")), {})
        await begun._send()
        begun.process.wait(60)
        with pytest.raises(UpgradeRefused, match="unexpected responseat"):
            await begun._answer()

    with socket.socket() as sock:
        asyncio.run(main(sock))


def test_time_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(successor, "command", lambda: ["/bin/sleep", "600"])
    monkeypatch.setattr(successor, "READY_SECONDS", 0.01)

    async def main() -> None:
        begun = Successor.start(NOTHING, {})
        with pytest.raises(UpgradeRefused, match="does not serve within"):
            await begun.ready()
        assert begun.process.wait(60) == -9

    asyncio.run(main())


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(successor, "command", lambda: ["/nowhere/headgate"])
    with pytest.raises(UpgradeRefused, match="/nowhere/headgate cannot be started: No such file"):
        Successor.start(NOTHING, {})
