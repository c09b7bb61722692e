"""CPU time and memory of a process and all below it, from /proc (see proc(5))."""

from __future__ import annotations

import array
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
# A line of proc_pid_maps(5) about a file.
MAPPING = re.compile(r"(?P<start>\w+)-(?P<end>\w+) \S+ (?P<offset>\w+) (?P<file>\S+ \d+) +(?P<name>/.*)")
# Bits of an entry of proc_pid_pagemap(5): the page is in memory, and one of a file.
PRESENT, OF_FILE = 1 << 63, 1 << 61


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


def _file_pages(pid: int) -> Iterator[tuple[str, int]]:
    """Each page of a file that a process has mapped and not changed: device and inode, and the number of the page."""
    with Path(f"/proc/{pid}/maps").open() as maps, Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pagemap:
        for line in maps:
            # Shared memory has a name too, and is counted elsewhere.
            if (mapping := MAPPING.match(line)) is None or mapping["name"].startswith("/memfd:"):
                continue
            start, end, offset = (int(mapping[name], 16) // PAGE for name in ("start", "end", "offset"))
            entries = array.array("Q", os.pread(pagemap.fileno(), (end - start) * 8, start * 8))
            for index, entry in enumerate(entries):
                if entry & PRESENT and entry & OF_FILE:
                    yield mapping["file"], offset + index


def memory_alone_kb(root: int) -> int:
    """KiB that a tree takes where no other process has mapped the same files, such as Python's own library.

    PSS counts a page of a file by the share of all processes of the machine. Here, each that a process of the tree has
    mapped counts once (proc_pid_pagemap(5)), and other memory by its PSS: nobody else has it.
    """
    other_kb = 0
    pages: set[tuple[str, int]] = set()
    for pid in tree(root):
        try:
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            pages.update(_file_pages(pid))
        except OSError:
            continue
        other_kb += sum(int(found) for found in re.findall(r"^Pss_(?:Anon|Shmem): +(\d+)", rollup, re.M))
    return other_kb + len(pages) * PAGE // 1024


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
