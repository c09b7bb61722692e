"""Samples of allocations."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading

import pytest

from headgate_engine.context.headers import MessageHead
from headgate_engine.profile import heap
from headgate_engine.profile.heap import HeapSample


@pytest.fixture(autouse=True)
def stopped():
    yield
    heap.stop()


def make(count: int, size: int) -> list[bytes]:
    return [bytes(size) for _ in range(count)]


def mine(function: str = "make") -> list[HeapSample]:
    return [sample for sample in heap.samples() if any(name.endswith(function) for name, _, _ in sample.frames)]


def test_nothing_is_sampled_before_the_start_and_after_the_end() -> None:
    assert heap.rate() == 0
    assert heap.samples() == []
    heap.start(1000)
    assert heap.rate() == 1000
    with pytest.raises(RuntimeError):
        heap.start(1000)
    heap.stop()
    heap.stop()
    assert heap.rate() == 0
    assert heap.samples() == []
    with pytest.raises(ValueError):
        heap.start(0)


def test_a_rate_of_one_byte_sees_every_block() -> None:
    heap.start(1)
    kept = make(100, 5000)
    found = mine()
    large = [sample for sample in found if sample.alloc_bytes >= 100 * 5000]
    assert len(large) == 1
    assert large[0].live_objects == 100
    assert 100 * 5000 <= large[0].live_bytes <= 100 * 5100
    name, file, line = next(frame for frame in large[0].frames if frame[0].startswith("make"))
    assert file == __file__
    assert line == make.__code__.co_firstlineno + 1
    assert name in ("make", "make.<locals>.<listcomp>")
    assert large[0].native
    del kept[:60]
    again = next(sample for sample in mine() if sample.alloc_bytes >= 100 * 5000)
    assert again.live_objects == 40
    assert again.alloc_objects == 100
    del kept
    assert all(sample.live_bytes < 10_000 for sample in mine())


def test_the_samples_stand_for_all_bytes() -> None:
    import math

    rate, size, count = 50_000, 8_000, 10_000
    heap.start(rate)
    kept = make(count, size)
    live = sum(sample.live_bytes for sample in mine())
    scale = 1 / (1 - math.exp(-(size + 33) / rate))
    # 1500 samples expected; six standard deviations.
    assert abs(live * scale / (count * size) - 1) < 0.16
    del kept


def test_blocks_that_grow_are_counted_once() -> None:
    heap.start(1)

    def grow() -> bytearray:
        found = bytearray()
        for _ in range(1000):
            found += b"x" * 1000
        return found

    found = grow()
    live = sum(sample.live_bytes for sample in mine("grow"))
    assert len(found) <= live <= 2 * len(found)
    del found
    assert sum(sample.live_bytes for sample in mine("grow")) < 200_000


@pytest.mark.parametrize("rate", [1, 64, 4096])
def test_random_work_of_several_threads_leaves_sums_that_fit(rate: int) -> None:
    heap.start(rate)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        kept: list[object] = []
        for _ in range(3000):
            kind = chance.randrange(5)
            if kind == 0:
                kept.append({chance.random(): [chance.random()] * chance.randrange(200)})
            elif kind == 1:
                cycle: list[object] = [bytes(chance.randrange(2000))]
                cycle.append(cycle)
            elif kind == 2 and kept:
                kept.pop(chance.randrange(len(kept)))
            elif kind == 3:
                kept.append((lambda n: (yield n))(kept and len(kept)))
            else:
                "x".join(str(number) for number in range(chance.randrange(100)))
            if chance.random() < 0.001:
                gc.collect()
                heap.samples()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    for sample in heap.samples():
        assert sample.live_objects <= sample.alloc_objects
        assert sample.live_bytes <= sample.alloc_bytes
    assert sum(sample.alloc_objects for sample in heap.samples()) > 100


def test_a_process_that_samples_ends_well() -> None:
    code = (
        "from headgate_engine.profile import heap\n"
        "import json, asyncio, decimal\n"
        "heap.start(1)\n"
        "kept = [object() for _ in range(1000)]\n"
        "class Late:\n"
        "    def __del__(self): [bytes(100) for _ in range(100)]\n"
        "late = Late()\n"
        "asyncio.run(asyncio.sleep(0))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_starting_and_stopping_again_and_again_is_safe() -> None:
    kept: list[object] = []
    for round_number in range(20):
        heap.start(100)
        kept.append(make(100, 1000))
        if round_number % 3 == 0:
            kept.clear()
        heap.stop()
        kept.append([str(number) for number in range(1000)])
    kept.clear()


def test_buffers_of_the_engine_are_sampled() -> None:
    def heads() -> list[MessageHead]:
        return [MessageHead() for _ in range(3000)]

    heap.start(1)
    kept = heads()
    live = sum(sample.live_bytes for sample in mine("heads"))
    assert live >= 3000 * 1024, "the text of each head, and where its fields stand"
    kept.clear()       # the memory of some is kept for the next ones (context/headers.MAX_SPARE)
    assert sum(sample.live_bytes for sample in mine("heads")) < live / 10
