"""`/memory`: the memory of all processes. Every probe is best effort; a failed probe returns null."""

from __future__ import annotations

import ctypes
import re
import sys
import time
from pathlib import Path
from typing import Any


class _Mallinfo(ctypes.Structure):
    """struct mallinfo2 of glibc (mallinfo(3))."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keep",
        )
    ]


def smaps(pid: int) -> dict[str, int] | None:
    """Return /proc/<pid>/smaps_rollup in bytes with snake-case keys (proc_pid_smaps(5)), None if unreadable."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return None
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            found[_snake(name)] = int(words[0]) * 1024
    return found


def _snake(name: str) -> str:
    text = name.replace("_", "")
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(text))


def resident(pid: int) -> int | None:
    """Return the resident set size of a process in bytes, None if unreadable."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return None
    return pages * 4096


def cgroup() -> dict[str, int] | None:
    """Return the memory counters of this process's cgroup in bytes (version 2), None if there are none."""
    try:
        own = Path("/proc/self/cgroup").read_text().strip().rpartition("::")[2]
        folder = Path("/sys/fs/cgroup") / own.lstrip("/")
        found = {"usage": int((folder / "memory.current").read_text())}
        for line in (folder / "memory.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            found[name] = int(value)
    except (OSError, ValueError):
        return None
    found["working_set"] = max(0, found["usage"] - found.get("inactive_file", 0))
    return found


def _malloc_info(libc: ctypes.CDLL) -> str:
    """Return glibc's report of its heaps as XML (malloc_info(3)); empty with another C library."""
    try:
        open_memstream, malloc_info, close, free = libc.open_memstream, libc.malloc_info, libc.fclose, libc.free
    except AttributeError:
        return ""
    open_memstream.restype = ctypes.c_void_p
    text, size = ctypes.c_void_p(), ctypes.c_size_t()
    file = open_memstream(ctypes.byref(text), ctypes.byref(size))
    if not file:
        return ""
    failed = malloc_info(0, ctypes.c_void_p(file))
    close(ctypes.c_void_p(file))
    found = "" if failed or not text.value else ctypes.string_at(text.value, size.value).decode(errors="replace")
    free(text)
    return found


def c_heap() -> dict[str, int | None]:
    """Return values that only malloc_info() reports: the number of heaps, and the maximum size in bytes."""
    text = _malloc_info(ctypes.CDLL(None))
    # The last match is the sum over all heaps.
    most = re.findall(r'<system type="max" size="(\d+)"/>', text)
    return {"system_max": int(most[-1]) if most else None, "heaps": text.count("<heap ") or None}


def of_process() -> dict[str, Any]:
    """Return the memory of this process that heap profiles omit: the C heap, and the number of Python objects."""
    return {"allocator": allocator(), "python": {"allocated_blocks": sys.getallocatedblocks()}}


def allocator() -> dict[str, object]:
    """Return glibc's allocator statistics for this process in bytes."""
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return {"kind": "undeclared", "comparable": None, "specific": None}
    mallinfo2.restype = _Mallinfo
    info = mallinfo2()
    return {
        "kind": "glibc",
        "comparable": {
            "allocated_bytes": info.uordblks + info.hblkhd,
            "active_bytes": None,
            "resident_bytes": resident_self(),
            "mapped_bytes": info.arena + info.hblkhd,
            "retained_bytes": info.fordblks,
            "metadata_bytes": None,
            "committed_bytes": None,
            "allocator_structures": None,
        },
        "specific": {
            "glibc": {
                "system_current": info.arena,
                "free_bytes": info.fordblks,
                "mmap_current": info.hblkhd,
                "in_use_bytes": info.uordblks,
                **c_heap(),
            }
        },
    }


def resident_self() -> int | None:
    """Return the resident set size of this process in bytes, None if unreadable."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except (OSError, ValueError):
        return None


def report(
    pid: int,
    workers: list[int],
    numbers: list[dict[str, object]],
    heap: dict[str, int] | None = None,
    told: list[dict[str, Any]] | None = None,
) -> dict[str, object]:
    """Return the complete document for the supervisor `pid` and its workers.

    `heap` holds the sums of the sampled heap. `told` holds the result of of_process() from each worker, empty if the
    worker did not answer.
    """
    silent: dict[str, Any] = {"allocator": None, "python": None}
    own = of_process()
    answers = [silent | one for one in told or []]
    answers += [silent] * (len(workers) - len(answers))
    return {
        "captured_at_unix_ms": int(time.time() * 1000),
        "capture_mode": "FramePointer",
        "allocation_stats": {
            "allocated": None,
            "freed": None,
            "allocations": sys.getallocatedblocks(),
            "frees": None,
        },
        "pprof": heap,
        "allocator": own["allocator"],
        "cgroup": cgroup(),
        "smaps": smaps(pid),
        "processes": [
            {"role": "supervisor", "pid": pid, "smaps": smaps(pid), **own},
            *(
                {"role": "worker", "index": index, "pid": worker, "smaps": smaps(worker), **answer, "numbers": number}
                for index, (worker, answer, number) in enumerate(zip(workers, answers, numbers, strict=False))
            ),
        ],
    }
