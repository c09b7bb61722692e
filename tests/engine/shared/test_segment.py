"""The shared segment: one key, one place, in every process."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time

import pytest

from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.counters import Counter, Gauge
from headgate_engine.shared.lock import holder_of
from headgate_engine.shared.segment import KIND_NAMES, SERIES_BYTES, STATE_BYTES, Segment, SegmentFull, other_key

# Of the header: u64 magic, u32 version, u32 spare, u64 size, u64 lock.
VERSION_AT, LOCK_AT = 8, 24
LEAST_STATE, LEAST_SERIES = 65536, 65536 + 262144

MAKERS = """
import sys
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment
segment = Segment.attach(int(sys.argv[1]))
for turn in range(3):
    for number in range(300):
        Counter(segment, b"f\\0n=%d" % number).add(1)
"""

WITHOUT_DESCRIPTORS = """
import resource, sys
from headgate_engine.shared.counters import Counter
from headgate_engine.shared.segment import Segment
segment = Segment.attach(int(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_NOFILE, (0, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print("waits", flush=True)
Counter(segment, b"a\\0").add(1)
"""

HOLDER = """
import os, sys
from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.segment import Segment
segment = Segment.attach(int(sys.argv[1]), 3)
held = SlotClaims(segment, b"k"), SlotClaims(segment, b"another")
held[0].offer(5)
os._exit(0)
"""


def children(count: int, program: str, fd: int) -> None:
    """Run `count` processes that inherit the descriptor."""
    running = [subprocess.Popen([sys.executable, "-c", program, str(fd)], pass_fds=[fd]) for _ in range(count)]
    assert [child.wait(timeout=60) for child in running] == [0] * count


def values(segment: Segment) -> dict[bytes, int]:
    return {key: struct.unpack("=q", value)[0] for key, _kind, value in segment.entries()}


def test_a_key_leads_to_the_same_slot_again() -> None:
    segment = Segment.create()
    Counter(segment, b"a\0x").add(3)
    Counter(segment, b"a\0y").add(4)
    assert Counter(segment, b"a\0x").value == 3
    assert Counter(segment, b"a\0y").value == 4
    assert len(segment) == 2


def test_entries_tell_key_kind_and_value() -> None:
    segment = Segment.create()
    Counter(segment, b"a\0x").add(3)
    Gauge(segment, b"g\0").set(-7)
    found = {key: (KIND_NAMES[kind], struct.unpack("=q", value)[0]) for key, kind, value in segment.entries()}
    assert found == {b"a\0x": (b"counter", 3), b"g\0": (b"gauge", -7)}


def test_a_key_of_another_kind_is_refused() -> None:
    segment = Segment.create()
    Counter(segment, b"a\0")
    with pytest.raises(ValueError, match="another kind"):
        Gauge(segment, b"a\0")


def test_processes_that_make_the_same_slots_at_once_share_them() -> None:
    segment = Segment.create()
    children(4, MAKERS, segment.fd)
    assert len(segment) == 300
    assert list(values(segment).values()) == [12] * 300


def test_a_slot_is_aligned_to_its_cache_line() -> None:
    segment = Segment.create()
    for number in range(20):
        Counter(segment, b"k" * (number + 1)).add(0x5EED0000 + number)
    series_at = struct.unpack("=Q", os.pread(segment.fd, 8, 16))[0] - SERIES_BYTES
    entries = SERIES_BYTES // 8
    text = os.pread(segment.fd, 1 << 20, series_at + entries - entries % 64)
    assert [text.index(struct.pack("=q", 0x5EED0000 + number)) % 64 for number in range(20)] == [0] * 20


def test_without_room_a_series_is_the_one_of_its_family_named_other() -> None:
    segment = Segment.create(series_limit=2)
    first = Counter(segment, b'a\0x="1",y="2"')
    Gauge(segment, b"g\0").set(1)
    for number in range(3):
        Counter(segment, b'a\0x="\\"%d",y=""' % number).add(2)
    Gauge(segment, b"h\0").set(4)
    first.add(7)
    assert values(segment) == {b'a\0x="1",y="2"': 7, b"g\0": 1, b'a\0x="other",y="other"': 6, b"h\0": 4}
    assert segment.stats()["series_refused"] == 4
    assert other_key(b"a\0") == b"a\0"


def test_a_full_heap_of_series_degrades_as_well() -> None:
    segment = Segment.create(series_bytes=LEAST_SERIES)
    for number in range(200):
        Counter(segment, b'a\0x="%d%s"' % (number, b"x" * 1000)).add(1)
    found = values(segment)
    assert sum(found.values()) == 200
    assert found[b'a\0x="other"'] > 100


def test_when_there_is_no_room_for_other_either_counters_count_unseen() -> None:
    segment = Segment.create(series_limit=0)
    counters = [Counter(segment, b"f%d\0" % number) for number in range(600)]
    counters[599].add(3)
    assert counters[599].value == 3
    assert len(segment) == 512


def test_series_take_no_room_from_limits_nor_the_other_way_round() -> None:
    segment = Segment.create(state_bytes=LEAST_STATE, series_limit=10)
    for number in range(1000):
        Counter(segment, b'a\0x="%d"' % number).add(1)
    held = [TokenBucket(segment, b"%d" % number, 1, 1, 1) for number in range(50)]
    with pytest.raises(SegmentFull):
        held += [TokenBucket(segment, b"more %d" % number, 1, 1, 1) for number in range(1000)]
    segment.limit_series(20)
    Counter(segment, b'b\0x="1"').add(1)
    assert values_of(segment, b"b") == {b'b\0x="1"': 1}


def values_of(segment: Segment, family: bytes) -> dict[bytes, int]:
    return {
        key: struct.unpack("=q", value)[0]
        for key, _kind, value in segment.entries(series_only=True)
        if key.startswith(family + b"\0")
    }


def test_a_slot_of_state_goes_back_with_its_last_holder() -> None:
    segment = Segment.create()
    one, two = SlotClaims(segment, b"k"), SlotClaims(segment, b"k")
    one.offer(7)
    del one
    assert two.offered(7)
    del two
    assert len(segment) == 0
    assert not SlotClaims(segment, b"k").offered(7), "a slot that is used again begins empty"


def test_another_process_keeps_a_slot_until_its_successor_has_come() -> None:
    segment = Segment.create()
    claims = SlotClaims(segment, b"k")
    children(1, HOLDER, segment.fd)
    del claims
    assert len(segment) == 2, "what a process held that died is there for the one that takes its place"
    successor = Segment.attach(os.dup(segment.fd), 3)
    again = SlotClaims(successor, b"k")
    assert again.offered(5)
    successor.forget_predecessor()
    assert len(segment) == 1
    del again
    assert len(segment) == 0


def test_a_fork_gives_nothing_back_that_its_parent_holds() -> None:
    segment = Segment.create()
    claims = SlotClaims(segment, b"k")
    child = os.fork()
    if child == 0:
        del claims
        os._exit(0)
    os.waitpid(child, 0)
    assert len(segment) == 1
    assert not claims.offered(1)


def test_idle_series_of_old_configurations_are_swept_when_room_gets_scarce() -> None:
    segment = Segment.create(series_limit=10)
    held = Counter(segment, b'a\0x="held"')
    for number in range(5):
        Counter(segment, b'a\0x="%d"' % number).add(1)
    assert segment.sweep() == 0, "the configuration is the same"
    segment.begin_generation()
    Counter(segment, b'a\0x="0"').add(1)
    assert segment.sweep() == 0, "they were counted under the last one"
    segment.begin_generation()
    assert segment.sweep() == 4
    assert values(segment) == {b'a\0x="held"': 0, b'a\0x="0"': 2}
    segment.begin_generation()
    segment.begin_generation()
    assert segment.sweep() == 0, "most of the room is free"
    assert held.value == 0


@pytest.mark.parametrize("sizes", [(4096, LEAST_SERIES), (LEAST_STATE, 65536), (0, LEAST_SERIES), (-1, -1)])
def test_a_segment_that_is_too_small_is_refused(sizes: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="too small"):
        Segment.create(state_bytes=sizes[0], series_bytes=sizes[1])


def test_attaching_to_anything_else_is_refused() -> None:
    zeroes = os.memfd_create("zeroes")
    os.ftruncate(zeroes, 1 << 20)
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
    segment = Segment.create()
    os.pwrite(segment.fd, struct.pack("=I", value), at)
    with pytest.raises(ValueError, match="layout"):
        Segment.attach(segment.fd)


def test_a_header_that_does_not_fit_the_file_is_refused() -> None:
    segment = Segment.create()
    os.ftruncate(segment.fd, SERIES_BYTES)
    with pytest.raises(ValueError, match="fit"):
        Segment.attach(segment.fd)


def test_a_segment_is_made_by_its_two_makers_only() -> None:
    with pytest.raises(TypeError):
        Segment()


def test_untouched_memory_costs_nothing() -> None:
    segment = Segment.create()
    Counter(segment, b"a\0").add(1)
    held = SlotClaims(segment, b"k")
    assert os.fstat(segment.fd).st_size > STATE_BYTES + SERIES_BYTES
    # The header, and of each area one page of entries, of the table, and of values.
    assert os.fstat(segment.fd).st_blocks * 512 <= 9 * os.sysconf("SC_PAGESIZE")
    assert not held.offered(1)


def test_counters_outlive_the_descriptor_and_the_segment_object() -> None:
    segment = Segment.create()
    counter = Counter(segment, b"a\0")
    segment.close()
    segment.close()
    assert segment.fd == -1
    del segment
    counter.add(2)
    assert counter.value == 2


def test_a_maker_that_died_with_the_lock_blocks_nobody() -> None:
    segment = Segment.create()
    dead = subprocess.Popen(["sleep", "60"])
    os.pwrite(segment.fd, struct.pack("=Q", holder_of(dead.pid)), LOCK_AT)
    dead.kill()
    dead.wait()
    Counter(segment, b"a\0").add(1)
    assert Counter(segment, b"a\0").value == 1
    assert os.pread(segment.fd, 8, LOCK_AT) == bytes(8)


def test_a_live_holder_of_which_nothing_can_be_read_keeps_its_lock() -> None:
    segment = Segment.create()
    word = struct.pack("=Q", holder_of(os.getpid()))
    os.pwrite(segment.fd, word, LOCK_AT)
    waits = subprocess.Popen([sys.executable, "-c", WITHOUT_DESCRIPTORS, str(segment.fd)], pass_fds=(segment.fd,), stdout=subprocess.PIPE)
    try:
        assert waits.stdout is not None
        with waits.stdout:
            assert waits.stdout.readline() == b"waits\n"
        # It looks at the holder every few thousand turns: a second of processor time is a hundred looks.
        deadline, begun = time.monotonic() + 60, _processor_seconds(waits.pid)
        while waits.poll() is None and _processor_seconds(waits.pid) < begun + 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert os.pread(segment.fd, 8, LOCK_AT) == word
        os.pwrite(segment.fd, bytes(8), LOCK_AT)
        assert waits.wait(60) == 0
    finally:
        waits.kill()
        waits.wait()
    assert Counter(segment, b"a\0").value == 1


def _processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_lock_of_a_dead_process_whose_id_lives_on_in_another_is_taken_over() -> None:
    segment = Segment.create()
    earlier = holder_of(os.getppid()) - 1
    os.pwrite(segment.fd, struct.pack("=Q", earlier), LOCK_AT)
    Counter(segment, b"a\0").add(1)
    assert Counter(segment, b"a\0").value == 1
