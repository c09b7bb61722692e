"""The command of a new process, and who would mistake the end of the old one."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from headgate.admin.running import UpgradeRefused
from headgate.server import successor
from headgate.server.handover import Handover
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
    assert "has started it" in obstacle({}, True)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("exit 4", r"ended before it served \(exit status 4\)"),
        # A channel that closes with something unread in it is reset.
        ('head -c 1 <&$HEADGATE_UPGRADE_FD >/dev/null; printf %s "{\\"refused\\": \\"because\\"}" >&$HEADGATE_UPGRADE_FD', "^because$"),
        ('printf %s "{\\"ready\\": 1}" >&$HEADGATE_UPGRADE_FD; sleep 600', "not understood: KeyError"),
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
