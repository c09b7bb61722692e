"""Heap profiles of the whole process tree: samples of the allocator (engine/profile/heap), put together and named.

Off unless HEAP_PROFILE_RATE or the admin endpoint switches it on: then nothing sits in front of the allocator, and the
profile is empty.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headgate.admin.running import HEAP_RATES
from headgate_engine.lazy_pattern import lazy_pattern

if TYPE_CHECKING:  # loading these costs time that a start without a profile need not take
    from headgate.dialect.elf import Symbols
    from headgate.dialect.pprof import StackFrame
    from headgate.server.worker_pool import WorkerHandle

VARIABLE: Final = "HEAP_PROFILE_RATE"
# How long a worker has to tell its samples.
WORKER_SECONDS: Final = 10.0
# Where the interpreter runs Python code: the frames above are Python's to name.
EVALUATION: Final = lazy_pattern(r"_PyEval_EvalFrame\w*|_PyEval_Vector|PyEval_EvalCode")
OWN: Final = "/headgate_engine/profile/heap."
CYTHON: Final = lazy_pattern(r"__pyx_(?:f|pf|pw|gb)_")
PART: Final = lazy_pattern(r"(\d+)")


class MappedFile(NamedTuple):
    """A mapped file."""

    start: int
    end: int
    offset: int
    path: str


def rate_of(text: str | None) -> int:
    """Return the sampling rate in bytes from the environment, 0 if there is none. Raises ValueError."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit() or (int(text) not in HEAP_RATES and int(text) != 0):
        least, most = HEAP_RATES.start, HEAP_RATES.stop - 1
        raise ValueError(f"{VARIABLE}: expected 0 or a number of bytes in {least}..{most}, found {text!r}")
    return int(text)


def switch(rate: int) -> None:
    """Sample the allocations of this process at this rate in bytes; 0 stops sampling."""
    if rate == current_rate():
        return
    from headgate_engine.profile import heap

    heap.stop()
    if rate:
        heap.start(rate)


def current_rate() -> int:
    """Return the mean number of bytes between two samples of this process; 0: none are taken."""
    import sys

    module = sys.modules.get("headgate_engine.profile.heap")
    return 0 if module is None else module.rate()


def report() -> bytes:
    """Return the samples of this process as JSON: `frames`, and samples that refer to them by index."""
    if not current_rate():
        return b'{"rate":0,"frames":[],"samples":[]}'
    from headgate_engine.profile import heap

    frames: dict[tuple[str, str, int], int] = {}
    samples = [
        [
            one.native,
            [frames.setdefault(frame, len(frames)) for frame in one.frames],
            (one.alloc_objects, one.alloc_bytes, one.live_objects, one.live_bytes),
        ]
        for one in heap.samples()
    ]
    document = {"rate": heap.rate(), "frames": list(frames), "samples": samples}
    return json.dumps(document, separators=(",", ":")).encode()


def totals(reports: Iterable[bytes]) -> dict[str, int] | None:
    """Return the totals of several processes as `/memory` shows them. Returns None while sampling is off."""
    documents = [json.loads(one) for one in reports]
    if not any(document["rate"] for document in documents):
        return None
    found = dict.fromkeys(
        ("total_stacks", "live_stacks", "alloc_space_bytes", "inuse_space_bytes", "alloc_objects", "inuse_objects"), 0
    )
    for document in documents:
        for _, _, values in document["samples"]:
            alloc_objects, alloc_bytes, live_objects, live_bytes = scaled(values, document["rate"])
            found["total_stacks"] += 1
            found["live_stacks"] += live_objects > 0
            found["alloc_objects"] += alloc_objects
            found["alloc_space_bytes"] += alloc_bytes
            found["inuse_objects"] += live_objects
            found["inuse_space_bytes"] += live_bytes
    return found


def scaled(values: Sequence[int], rate: int) -> tuple[int, int, int, int]:
    """Scale samples up to estimates: a block of `size` bytes is sampled with probability 1 - exp(-size / rate)."""
    found: list[int] = []
    for objects, size in (values[:2], values[2:]):
        scale = 0.0 if not objects else 1 / -math.expm1(-(size / objects or 1) / rate)
        found += [round(objects * scale), round(size * scale)]
    return found[0], found[1], found[2], found[3]


async def reports(workers: Iterable[WorkerHandle], rate: int) -> list[tuple[str, int, bytes]]:
    """Return name, process id and samples of each process; without a rate, of the supervisor alone. `rate`: bytes
    between two samples."""
    found = [("supervisor", os.getpid(), report())]
    for worker in workers if rate else ():
        assert worker.process is not None
        with contextlib.suppress(ConnectionError, TimeoutError):
            found.append((f"worker {worker.index}", worker.process.pid, await worker.ask_long("heap", WORKER_SECONDS)))
    return found


async def heap_profile(reports: list[tuple[str, int, bytes]], rate: int, default_rate: int) -> bytes:
    """Return a gzipped profile.proto. The input is (process name, pid, report) for each process. A thread looks up the
    symbols. `rate`, `default_rate`: bytes between two samples."""
    return await asyncio.to_thread(build, reports, rate or default_rate)


def build(reports: list[tuple[str, int, bytes]], rate: int) -> bytes:
    """Return the profile. `rate`: bytes between two samples."""
    import gzip

    from headgate.dialect.pprof import HEAP, Profile, StackFrame

    found = Profile(HEAP, ("space", "bytes"), rate, time.time_ns())
    libraries = Libraries()
    for label, pid, text in reports:
        document: dict[str, Any] = json.loads(text)
        places = mapped(pid) if document["samples"] else []
        known = [StackFrame(*one) for one in document["frames"]]
        for native, frames, values in document["samples"]:
            calls = native_frames(native, libraries, places) + [known[one] for one in frames]
            found.add(calls, scaled(values, document["rate"]), (("process", label),))
    return gzip.compress(found.encode(), mtime=0)


def mapped(pid: int) -> list[MappedFile]:
    """Return the code that a process has mapped from files."""
    found = []
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return []
    for line in lines:
        words = line.split(None, 5)
        if len(words) == 6 and "x" in words[1] and words[5].startswith("/"):
            start, _, end = words[0].partition("-")
            found.append(MappedFile(int(start, 16), int(end, 16), int(words[2], 16), words[5]))
    return found


class Libraries:
    """The symbols of files, read once each."""

    def __init__(self) -> None:
        self._symbols: dict[str, Symbols] = {}

    def name(self, path: str, offset: int) -> str | None:
        """Return the function at an offset of a file."""
        if path not in self._symbols:
            self._symbols[path] = symbols(path)
        return self._symbols[path].name(offset)


def symbols(path: str) -> Symbols:
    """Return the functions of a file; none when it cannot be read."""
    import mmap

    from headgate.dialect.elf import Symbols

    try:
        with Path(path).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            try:
                return Symbols(view)
            finally:
                view.release()
    except (OSError, ValueError):
        return Symbols(b"")


def native_frames(addresses: Iterable[int], libraries: Libraries, places: list[MappedFile]) -> list[StackFrame]:
    """Return the C frames between the allocation and its calling Python code, leaf first."""
    from headgate.dialect.pprof import StackFrame

    found: list[StackFrame] = []
    for address in addresses:
        # A return address may be that of the next function already.
        place = next((one for one in places if one.start <= address - 1 < one.end), None)
        if place is None:
            found.append(StackFrame(hex(address), "", 0))
            continue
        if OWN in place.path and not found:
            continue
        offset = address - 1 - place.start + place.offset
        name = libraries.name(place.path, offset)
        if name is not None and EVALUATION.match(name):
            break
        library = place.path.rpartition("/")[2]
        found.append(StackFrame(readable(name) if name else f"{library}+{offset:#x}", library, 0))
    return found


def readable(name: str) -> str:
    """Return the name of a Cython function as py-spy shows it: module or class, then the function."""
    start = CYTHON.match(name)
    if start is None:
        return name
    rest, last = name[start.end() :], ""
    while (number := PART.match(rest)) is not None:
        size = int(number[1])
        part, after = rest[number.end() : number.end() + size], rest[number.end() + size :]
        if len(part) < size or not after.startswith("_"):
            break
        last, rest = part, after[1:]
    return f"{last}_{rest.lstrip('0123456789')}" if last else name
