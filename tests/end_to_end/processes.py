"""Processes as /proc shows them: `ps` cuts command lines at the width of a terminal that is not there."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """The processes, also ended ones not yet waited for, whose parent is `pid` now."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stat = path.read_text()
        except OSError:         # it ended meanwhile
            continue
        if int(stat.rpartition(")")[2].split()[1]) == pid:
            found.append(int(path.parent.name))
    return sorted(found)


def command_line(pid: int) -> str:
    """Arguments with spaces between; empty for a process that ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(pid: int, seconds: float = 60) -> None:
    """Send SIGKILL and wait until the process has ended: until then it may still answer."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + seconds
    while alive(pid):
        assert time.monotonic() < deadline, f"process {pid} goes on after SIGKILL"
        time.sleep(0.002)


def alive(pid: int) -> bool:
    """Whether a thread of a process runs; one that nobody has waited for yet has ended.

    The first thread may end before the others, and the process has its sockets until the last one has.
    """
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False
    for thread in threads:
        with contextlib.suppress(OSError):      # it has ended meanwhile
            if (thread / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                return True
    return False
