"""CPU time and memory of a local target, a process with all below it, as /proc tells them (proc(5))."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from headgate.capacity.errors import BenchError
from headgate.capacity.figures import Usage

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE_KB: Final = os.sysconf("SC_PAGE_SIZE") // 1024
_LISTEN: Final = "0A"


def _stat(pid: int, proc: Path) -> list[str]:
    """Return the fields of a process from the third on; none if it is gone."""
    try:
        return (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _numbers(proc: Path) -> list[int]:
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]


class TargetMeter:
    """Reads what a tree of processes takes."""

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        """Raises BenchError if there is no such process."""
        self.pid, self.proc = pid, proc
        if not _stat(pid, proc):
            raise BenchError(f"there is no process {pid}")

    def tree(self) -> list[int]:
        """Return the process and all below it."""
        below: dict[int, list[int]] = {}
        for pid in _numbers(self.proc):
            if fields := _stat(pid, self.proc):
                below.setdefault(int(fields[1]), []).append(pid)
        found = [self.pid]
        for pid in found:
            found.extend(below.get(pid, ()))
        return found

    def usage(self) -> Usage:
        """Return the CPU time until now, ended children included, and the memory now.

        A page counts once for each process that has it alone, and shared pages by their share (PSS) where the kernel
        lets us see it.
        """
        cpu, memory, count = 0, 0, 0
        for pid in self.tree():
            if fields := _stat(pid, self.proc):
                cpu += sum(map(int, fields[11:15]))
                memory += self._memory_kb(pid, fields)
                count += 1
        return Usage(cpu / _TICKS, memory, count)

    def _memory_kb(self, pid: int, fields: list[str]) -> int:
        try:
            for line in (self.proc / str(pid) / "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1])
        except OSError:
            pass
        return int(fields[21]) * _PAGE_KB


def listening_pid(port: int, proc: Path = Path("/proc")) -> int | None:
    """Return the process that listens at a TCP port, of several the one that the others come from; None: nobody that
    we may see."""
    sockets = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                sockets.add(f"socket:[{words[9]}]")
    if not sockets:
        return None
    holders = {pid for pid in _numbers(proc) if _holds(pid, sockets, proc)}
    for pid in sorted(holders):
        fields = _stat(pid, proc)
        if fields and int(fields[1]) not in holders:
            return pid
    return None


def _holds(pid: int, sockets: set[str], proc: Path) -> bool:
    try:
        return any(os.readlink(entry) in sockets for entry in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return False
