"""The shared segment: one key, one place, in every process."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import sys

import pytest

from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.lock import holder_of
from headgate_engine.shared.segment import KIND_NAMES, Segment, SegmentFull

SIZE = 1 << 20
# Of the header: u64 magic, u32 version, u32 directory size, u64 size, u64 heap used, u64 lock.
VERSION_AT, SIZE_AT, LOCK_AT = 8, 16, 32

MAKERS = """
import sys
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment
segment = Segment.attach(int(sys.argv[1]))
for turn in range(3):
    for number in range(300):
        Counter(segment, b"f\\0n=%d" % number).add(1)
"""


def children(count: int, program: str, fd: int) -> None:
    """Run `count` processes that inherit the descriptor."""
    running = [subprocess.Popen([sys.executable, "-c", program, str(fd)], pass_fds=[fd]) for _ in range(count)]
    assert [child.wait(timeout=60) for child in running] == [0] * count


def fill(segment: Segment, key: bytes) -> None:
    """Make counters until there is no room for another."""
    number = 0
    with contextlib.suppress(SegmentFull):
        while True:
            Counter(segment, b"%d" % number + key)
            number += 1
    with pytest.raises(SegmentFull):
        Counter(segment, b"last" + key)


def test_a_key_leads_to_the_same_slot_again() -> None:
    segment = Segment.create(SIZE, 64)
    Counter(segment, b"a\0x").add(3)
    Counter(segment, b"a\0y").add(4)
    assert Counter(segment, b"a\0x").value == 3
    assert Counter(segment, b"a\0y").value == 4
    assert len(segment) == 2


def test_entries_tell_key_kind_and_value() -> None:
    segment = Segment.create(SIZE, 64)
    Counter(segment, b"a\0x").add(3)
    Gauge(segment, b"g\0").set(-7)
    found = {key: (KIND_NAMES[kind], struct.unpack("=q", value)[0]) for key, kind, value in segment.entries()}
    assert found == {b"a\0x": (b"counter", 3), b"g\0": (b"gauge", -7)}


def test_a_key_of_another_kind_is_refused() -> None:
    segment = Segment.create(SIZE, 64)
    Counter(segment, b"a\0")
    with pytest.raises(ValueError, match="another kind"):
        Gauge(segment, b"a\0")


def test_processes_that_make_the_same_slots_at_once_share_them() -> None:
    segment = Segment.create(SIZE, 1024)
    children(4, MAKERS, segment.fd)
    assert len(segment) == 300
    values = [struct.unpack("=q", value)[0] for _key, _kind, value in segment.entries()]
    assert values == [12] * 300


def test_a_slot_is_aligned_to_its_cache_line() -> None:
    segment = Segment.create(SIZE, 64)
    for number in range(20):
        Counter(segment, b"k" * (number + 1)).add(0x5EED0000 + number)
    text = os.pread(segment.fd, SIZE, 0)
    assert [text.index(struct.pack("=q", 0x5EED0000 + number)) % 64 for number in range(20)] == [0] * 20


def test_a_full_directory_raises_and_the_slots_there_are_go_on() -> None:
    segment = Segment.create(SIZE, 16)
    counters = [Counter(segment, b"k%d" % number) for number in range(12)]
    with pytest.raises(SegmentFull):
        Counter(segment, b"one more")
    counters[3].add(5)
    assert Counter(segment, b"k3").value == 5


def test_a_full_heap_raises() -> None:
    segment = Segment.create(SIZE, 16384 // 2)
    fill(segment, b"x" * 1000)
    assert 300 < len(segment) < 1000


def test_the_overflow_slots_have_room_when_nothing_else_has() -> None:
    for entries, key in ((16, b""), (8192, b"x" * 1000)):
        segment = Segment.create(SIZE, entries)
        fill(segment, key)
        Counter.overflow(segment).add(2)
        Counter.overflow(segment).add(3)
        Gauge.overflow(segment).set(4)
        values = {name: struct.unpack("=q", value)[0] for name, _kind, value in segment.entries()}
        assert values[b"gw_overflow_counter\0"] == 5
        assert values[b"gw_overflow_gauge\0"] == 4


@pytest.mark.parametrize(("size", "entries"), [(4096, 16), (SIZE, 25000), (SIZE, 0), (-1, 16)])
def test_a_segment_too_small_for_its_directory_is_refused(size: int, entries: int) -> None:
    with pytest.raises(ValueError, match="too small"):
        Segment.create(size, entries)


def test_attaching_to_anything_else_is_refused() -> None:
    zeroes = os.memfd_create("zeroes")
    os.ftruncate(zeroes, SIZE)
    short = os.memfd_create("short")
    os.write(short, b"hello")
    reading, writing = os.pipe()
    for fd in (zeroes, short, reading):
        with pytest.raises(ValueError, match="not a Headgate segment"):
            Segment.attach(fd)
    for fd in (zeroes, short, reading, writing):
        os.close(fd)
    with pytest.raises(OSError):
        Segment.attach(reading)


@pytest.mark.parametrize(("at", "value"), [(VERSION_AT, 1), (VERSION_AT, 99)])
def test_another_layout_is_refused(at: int, value: int) -> None:
    segment = Segment.create(SIZE, 64)
    os.pwrite(segment.fd, struct.pack("=I", value), at)
    with pytest.raises(ValueError, match="layout"):
        Segment.attach(segment.fd)


def test_a_header_that_does_not_fit_the_file_is_refused() -> None:
    segment = Segment.create(SIZE, 64)
    os.ftruncate(segment.fd, SIZE // 2)
    with pytest.raises(ValueError, match="fit"):
        Segment.attach(segment.fd)


def test_a_segment_is_made_by_its_two_makers_only() -> None:
    with pytest.raises(TypeError):
        Segment()


def test_untouched_memory_costs_nothing() -> None:
    segment = Segment.create()
    Counter(segment, b"a\0").add(1)
    assert os.fstat(segment.fd).st_size == 16 * 1024 * 1024
    assert os.fstat(segment.fd).st_blocks * 512 < 64 * 1024


def test_counters_outlive_the_descriptor_and_the_segment_object() -> None:
    segment = Segment.create(SIZE, 64)
    counter = Counter(segment, b"a\0")
    segment.close()
    segment.close()
    assert segment.fd == -1
    del segment
    counter.add(2)
    assert counter.value == 2


def test_a_maker_that_died_with_the_lock_blocks_nobody() -> None:
    segment = Segment.create(SIZE, 64)
    dead = subprocess.Popen(["sleep", "60"])
    os.pwrite(segment.fd, struct.pack("=Q", holder_of(dead.pid)), LOCK_AT)
    dead.kill()
    dead.wait()
    Counter(segment, b"a\0").add(1)
    assert Counter(segment, b"a\0").value == 1
    assert os.pread(segment.fd, 8, LOCK_AT) == bytes(8)


def test_a_lock_of_a_dead_process_whose_id_lives_on_in_another_is_taken_over() -> None:
    segment = Segment.create(SIZE, 64)
    earlier = holder_of(os.getppid()) - 1
    os.pwrite(segment.fd, struct.pack("=Q", earlier), LOCK_AT)
    Counter(segment, b"a\0").add(1)
    assert Counter(segment, b"a\0").value == 1


def test_what_a_dead_maker_left_half_written_is_not_seen() -> None:
    segment = Segment.create(SIZE, 64)
    Counter(segment, b"a\0").add(1)
    used = struct.unpack("=Q", os.pread(segment.fd, 8, 24))[0]
    os.pwrite(segment.fd, b"\xff" * 200, used)
    fresh = Counter(segment, b"b\0")
    assert fresh.value == 0
