"""CPU time and memory of a process and all below it, from /proc (see proc(5))."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import NamedTuple

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """KiB. rss counts a page once per process that maps it, pss its share of it."""

    rss_kb: int
    pss_kb: int
    processes: int


def _fields(pid: int) -> list[str]:
    """Fields 3 and on of /proc/<pid>/stat; none when the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def tree(root: int) -> list[int]:
    """The process and everything below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found.extend(children.get(pid, ()))
    return found


def cpu_us(root: int) -> float:
    """User and system time of a tree in microseconds, that of children already waited for included."""
    return sum(sum(map(int, fields[11:15])) for pid in tree(root) if (fields := _fields(pid))) * TICK_US


def memory(root: int) -> Memory:
    """Memory of a tree; pages of the kernel (socket buffers) are not in it."""
    rss = pss = count = 0
    for pid in tree(root):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        sizes = {name: int(size) for name, size in re.findall(r"^(Rss|Pss):\s+(\d+)", text, re.M)}
        if sizes:
            rss, pss, count = rss + sizes["Rss"], pss + sizes["Pss"], count + 1
    return Memory(rss, pss, count)


def memory_alone_kb(root: int) -> int:
    """KiB that a tree takes where no other process has mapped the same files, such as Python's own library.

    PSS counts a page of a file by the share of all processes of the machine. Here, each file counts once, with the pages
    of the process that has most of it mapped; the others of a tree, which are forked, have few that it lacks.
    """
    anonymous = 0
    files: dict[str, int] = {}
    for pid in tree(root):
        mapped: dict[str, int] = {}
        name = ""
        try:
            lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue
        for line in lines:
            if (start := re.match(r"[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \d+ *(.*)", line)) is not None:
                name = start[1]
            elif (size := re.match(r"(Rss|Anonymous): +(\d+)", line)) is not None and name.startswith("/"):
                mapped[name] = mapped.get(name, 0) + (int(size[2]) if size[1] == "Rss" else -int(size[2]))
        for name, size_kb in mapped.items():
            files[name] = max(files.get(name, 0), size_kb)
        anonymous += sum(int(found) for found in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+)", rollup, re.M))
    return anonymous + sum(files.values())


def machine() -> dict[str, object]:
    """What the figures were taken on."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    total = re.search(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text(), re.M)
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": os.cpu_count(),
        "memory_mb": int(total[1]) // 1024 if total else 0,
        "system": f"{platform.system()} {platform.release()}",
    }


def steal_ticks() -> int:
    """Ticks the hypervisor gave to others, all cores."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8])
