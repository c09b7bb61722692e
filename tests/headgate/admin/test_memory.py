"""What processes say of their memory."""

from __future__ import annotations

import ctypes
import os

from headgate.admin import memory

MIB = 1 << 20


def allocated() -> int:
    found = memory.of_process()["allocator"]["comparable"]["allocated_bytes"]
    assert isinstance(found, int)
    return found


def test_memory_that_c_code_takes_is_counted() -> None:
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    for size, times in ((64 * MIB, 1), (1024, 64 * 1024)):      # by mmap, and from the heap
        before = allocated()
        blocks = [libc.malloc(size) for _ in range(times)]
        taken = allocated() - before
        for block in blocks:
            libc.free(ctypes.c_void_p(block))
        assert 60 * MIB < taken < 80 * MIB
        assert allocated() - before < 32 * MIB, "it is given back"


def test_the_most_that_was_ever_taken() -> None:
    found = memory.allocator()
    assert found["kind"] == "glibc"
    specific = found["specific"]["glibc"]  # type: ignore[index]
    assert specific["heaps"] >= 1
    assert specific["system_max"] >= specific["system_current"] > 0


def test_blocks_of_python_are_counted() -> None:
    before = memory.of_process()["python"]["allocated_blocks"]
    kept = [object() for _ in range(100_000)]
    assert memory.of_process()["python"]["allocated_blocks"] - before > 90_000
    del kept


def test_a_worker_that_does_not_answer_is_null() -> None:
    found = memory.report(os.getpid(), [os.getpid(), os.getpid()], [{}, {}], None, [{}, memory.of_process()])
    roles = found["processes"]
    assert isinstance(roles, list)
    assert [one["role"] for one in roles] == ["supervisor", "worker", "worker"]
    assert [one["allocator"] is None for one in roles] == [False, True, False]
