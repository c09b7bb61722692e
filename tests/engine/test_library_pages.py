"""Unchanged pages of libraries are given back; whatever was written to stays."""

from __future__ import annotations

import array
import json
import os
import subprocess
import sys

import pytest

from headgate_drivers.library_pages import file_runs
from headgate_engine.library_pages import drop_library_pages

# Bits of proc_pid_pagemap(5): in memory, in swap, of a file.
PRESENT, SWAPPED, FILE = 1 << 63, 1 << 62, 1 << 61
NONE, CLEAN, WRITTEN, SWAPPED_OUT, SHARED_OUT = 0, PRESENT | FILE, PRESENT, SWAPPED, SWAPPED | FILE
# Further bits of an entry, which say nothing about this: exclusively mapped, soft-dirty, the number of the frame.
MORE = 1 << 56 | 1 << 55 | 0x1234

RUNS = {
    "nothing": ([], []),
    "nothing in memory": ([NONE, NONE], []),
    "one page": ([CLEAN], [(0, 1)]),
    "all": ([CLEAN, CLEAN | MORE, CLEAN], [(0, 3)]),
    "a written page": ([WRITTEN], []),
    "a written page between": ([CLEAN, WRITTEN, CLEAN, CLEAN], [(0, 1), (2, 4)]),
    "written pages around": ([WRITTEN, CLEAN, WRITTEN | MORE], [(1, 2)]),
    "a written page in swap": ([CLEAN, SWAPPED_OUT, CLEAN], [(0, 1), (2, 3)]),
    "a page of shared memory in swap": ([CLEAN, SHARED_OUT, SHARED_OUT], [(0, 1)]),
    "a page that is not in memory": ([CLEAN, NONE, CLEAN], [(0, 1), (2, 3)]),
    "at both ends": ([NONE, CLEAN, CLEAN, NONE], [(1, 3)]),
}


@pytest.mark.parametrize("name", RUNS)
def test_only_runs_of_unchanged_pages_are_given_back(name: str) -> None:
    entries, expected = RUNS[name]
    assert file_runs(array.array("Q", entries)) == expected


def test_the_libraries_are_counted() -> None:
    every = drop_library_pages(0, 1_000_000)
    assert every > 10
    assert drop_library_pages(0, every) == every
    assert drop_library_pages(0, 3) == 3
    assert drop_library_pages(every - 2, 3) == 2
    assert drop_library_pages(every, 3) == 0
    assert drop_library_pages(every + 1, 3) == 0
    assert drop_library_pages(0, 0) == 0
    for first, count in ((-1, 1), (0, -1), (2**63 - 1, 1)):
        with pytest.raises(ValueError):
            drop_library_pages(first, count)


# Writes into the code of a library, as a debugger does, drops all pages, and tells: KiB of another library that are mapped before,
# after, and when it has been used again; mappings that have lost what was written to them; the byte that was written.
CODE = """
import ctypes, json, mmap, re
import headgate_engine.peek.json as used, headgate_engine.shared.segment as patched
from headgate_engine.library_pages import drop_library_pages

def mappings():
    found, at = {}, None
    for line in open("/proc/self/smaps"):
        if head := re.match(r"(\\w+)-(\\w+) (\\S+) \\S+ \\S+ \\d+ *(.*)", line):
            at = found[int(head[1], 16)] = {"end": int(head[2], 16), "rights": head[3], "name": head[4]}
        elif size := re.match(r"(Rss|Anonymous): +(\\d+)", line):
            at[size[1]] = int(size[2])
    return found

def clean(name):
    return sum(one["Rss"] - one["Anonymous"] for one in mappings().values() if one["name"] == name and "w" not in one["rights"])

protect = ctypes.CDLL(None).mprotect
protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
last = next(one["end"] for one in mappings().values() if one["name"] == patched.__file__ and "x" in one["rights"]) - 1
page = last + 1 - mmap.PAGESIZE
assert protect(page, mmap.PAGESIZE, 7) == 0
ctypes.memset(last, 0x5A, 1)
assert protect(page, mmap.PAGESIZE, 5) == 0

before, mapped = mappings(), clean(used.__file__)
drop_library_pages(0, 1_000_000)
after, left = mappings(), clean(used.__file__)
lost = [
    one for start, one in before.items()
    if one["name"].startswith("/") and after.get(start, {}).get("Anonymous", 0) < one["Anonymous"]
]
used.ObjectPeek(4)
segment = patched.Segment.create()
print(json.dumps([mapped, left, clean(used.__file__), lost, ctypes.string_at(last, 1).hex(), segment.fd > 0]))
"""


@pytest.mark.parametrize("allocator", ["default", "debug"])
def test_what_was_written_to_stays_and_all_runs(allocator: str) -> None:
    environ = {**os.environ, "PYTHONMALLOC": allocator}
    done = subprocess.run([sys.executable, "-c", CODE], env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    mapped, left, again, lost, written, made = json.loads(done.stdout)
    assert mapped > 0
    assert left == 0, "nothing uses it"
    assert again > 0
    assert lost == []
    assert written == "5a"
    assert made
