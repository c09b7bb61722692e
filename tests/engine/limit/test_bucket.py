"""Token buckets: fixed ticks, exact numbers, one limit for all processes."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time

import effort
import pytest
from bucket_arithmetic import ExactBucket
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_drivers.requests import look_at, settle_at
from headgate_engine.limit.bucket import MAX_TOKENS, TokenBucket
from headgate_engine.shared.lock import holder_of
from headgate_engine.shared.segment import Segment, SegmentFull

SECOND = 1_000_000_000
YEAR = 365 * 86400 * SECOND
SIZE = 1 << 20
LEAST = 65536

TAKERS = """
import sys, threading
from headgate_engine.limit.bucket import TokenBucket
from headgate_engine.shared.segment import Segment
bucket = TokenBucket(Segment.attach(int(sys.argv[1])), b"shared", 5000, 7, 1000)
steps, allowed = int(sys.argv[2]), []
def take():
    allowed.append(sum(bucket.take_at(1, step * 1000)[0] for step in range(steps) for _ in range(40)))
threads = [threading.Thread(target=take) for _ in range(16)]
[t.start() for t in threads]
[t.join() for t in threads]
print(sum(allowed))
"""


@pytest.fixture
def segment() -> Segment:
    return Segment.create(state_bytes=SIZE)


def bucket_of(segment: Segment, most: int, fill: int, interval: int) -> TokenBucket:
    return TokenBucket(segment, b"k", most, fill, interval, created_ns=0)


def test_a_bucket_starts_full_and_counts_down(segment: Segment) -> None:
    bucket = bucket_of(segment, 3, 1, 10 * SECOND)
    assert [bucket.take_at(1, 0) for _ in range(4)] == [
        (True, 3, 2, 10), (True, 3, 1, 10), (True, 3, 0, 10), (False, 3, 0, 10)
    ]  # fmt: skip


def test_nothing_is_added_inside_an_interval_and_the_refill_comes_at_the_tick(segment: Segment) -> None:
    bucket = bucket_of(segment, 5, 2, SECOND)
    assert bucket.take_at(5, 0)[0]
    assert bucket.take_at(1, SECOND - 1) == (False, 5, 0, 0)
    assert bucket.take_at(1, SECOND) == (True, 5, 1, 1)
    assert bucket.take_at(2, 2 * SECOND - 1) == (False, 5, 0, 0)
    assert bucket.take_at(3, 2 * SECOND) == (True, 5, 0, 1)


def test_ticks_are_counted_from_creation_and_not_from_the_last_take(segment: Segment) -> None:
    bucket = TokenBucket(segment, b"k", 1, 1, 10 * SECOND, created_ns=100 * SECOND)
    assert bucket.take_at(1, 107 * SECOND) == (True, 1, 0, 3)
    assert bucket.take_at(1, 109 * SECOND) == (False, 1, 0, 1)
    assert bucket.take_at(1, 110 * SECOND) == (True, 1, 0, 10)


def test_creation_is_now_when_no_time_is_given(segment: Segment) -> None:
    before = time.monotonic_ns()
    bucket = TokenBucket(segment, b"k", 1, 1, 100 * SECOND)
    assert bucket.take_at(1, before + 50 * SECOND)[3] in (49, 50)


def test_idle_time_is_not_saved_beyond_the_capacity(segment: Segment) -> None:
    bucket = bucket_of(segment, 4, 3, SECOND)
    assert bucket.take_at(4, 0)[0]
    assert bucket.take_at(4, 3600 * SECOND) == (True, 4, 0, 1)
    assert not bucket.take_at(1, 3600 * SECOND)[0]


@pytest.mark.parametrize("n", [0, -1, 6, 1 << 62, -(1 << 63)])
def test_an_impossible_number_is_refused_with_reset_0_and_takes_nothing(segment: Segment, n: int) -> None:
    bucket = bucket_of(segment, 5, 1, 10 * SECOND)
    assert bucket.take_at(n, 0) == (False, 5, 0, 0)
    assert bucket.take_at(5, 0)[0]


def test_a_bucket_without_capacity_refuses_everything(segment: Segment) -> None:
    assert bucket_of(segment, 0, 0, SECOND).take_at(1, 5 * SECOND) == (False, 0, 0, 0)


def test_a_look_takes_nothing(segment: Segment) -> None:
    bucket = bucket_of(segment, 2, 1, 10 * SECOND)
    assert [look_at(bucket, 2, 0) for _ in range(3)] == [(True, 2, 2, 10)] * 3
    bucket.take_at(2, 0)
    assert look_at(bucket, 1, 0) == (False, 2, 0, 10)


@pytest.mark.parametrize(("settled", "left"), [(-3, 2), (-9, 0), (4, 5), (-(1 << 63), 0), ((1 << 63) - 1, 5), (0, 5)])
def test_a_settled_level_stays_between_0_and_the_capacity(segment: Segment, settled: int, left: int) -> None:
    bucket = bucket_of(segment, 5, 1, 10 * SECOND)
    settle_at(bucket, settled, 0)
    assert look_at(bucket, 1, 0)[2] == left


def test_an_older_clock_reading_adds_nothing_twice(segment: Segment) -> None:
    bucket = bucket_of(segment, 10, 1, SECOND)
    bucket.take_at(10, 0)
    assert bucket.take_at(1, 3 * SECOND)[2] == 2
    assert bucket.take_at(1, 1 * SECOND)[2] == 1
    assert bucket.take_at(1, 3 * SECOND)[2] == 0
    assert not bucket.take_at(1, 3 * SECOND)[0]


def test_a_bucket_of_the_same_numbers_keeps_its_level_and_ticks(segment: Segment) -> None:
    running = bucket_of(segment, 9, 1, 10 * SECOND)
    running.take_at(4, 0)
    again = TokenBucket(segment, b"k", 9, 1, 10 * SECOND, created_ns=5 * SECOND)
    assert again.take_at(1, 7 * SECOND) == (True, 9, 4, 3)


@pytest.mark.parametrize("numbers", [(8, 1, 10 * SECOND), (9, 2, 10 * SECOND), (9, 1, 11 * SECOND)])
def test_other_numbers_make_another_bucket(segment: Segment, numbers: tuple[int, int, int]) -> None:
    bucket_of(segment, 9, 1, 10 * SECOND).take_at(9, 0)
    assert bucket_of(segment, *numbers).take_at(1, 0)[0]


@pytest.mark.parametrize(
    "numbers",
    [(1, 2, 1), (1, -1, 1), (-1, -1, 1), (1, 1, 0), (1, 1, -5), (MAX_TOKENS + 1, 1, 1)],
)
def test_numbers_that_make_no_bucket_are_refused(segment: Segment, numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError):
        bucket_of(segment, *numbers)


def test_a_full_segment_refuses_another_bucket() -> None:
    segment = Segment.create(state_bytes=LEAST)
    with pytest.raises(SegmentFull):
        buckets = [TokenBucket(segment, b"%d" % number, 1, 1, SECOND) for number in range(1000)]
    buckets = [TokenBucket(segment, b"%d" % number, 1, 1, SECOND) for number in range(100)]
    assert buckets[99].take_at(1, 0)[0]


def test_13_000_limits_have_room() -> None:
    segment = Segment.create()
    buckets = [TokenBucket(segment, b"limit %d" % number, 5, 1, SECOND) for number in range(13_000)]
    assert segment.stats()["state"] == 13_000
    assert all(bucket.take_at(1, 0)[0] for bucket in buckets)
    # A value, its key, the entry and its places in the table.
    assert os.fstat(segment.fd).st_blocks * 512 < 13_000 * 320


def test_a_bucket_keeps_its_level_while_anybody_holds_it_and_goes_with_the_last() -> None:
    segment = Segment.create()
    running = TokenBucket(segment, b"k", 5, 1, SECOND, created_ns=0)
    running.take_at(2, 0)
    reloaded = TokenBucket(segment, b"k", 5, 1, SECOND)
    del running
    assert reloaded.take_at(1, 0)[2] == 2
    del reloaded
    assert segment.stats()["state"] == 0
    assert TokenBucket(segment, b"k", 5, 1, SECOND, created_ns=0).take_at(1, 0)[2] == 4


def test_reloads_with_other_numbers_need_no_more_room() -> None:
    segment = Segment.create()
    held: list[TokenBucket] = []
    used = []
    for generation in range(10):
        # The new configuration is there before the old one goes.
        held = [TokenBucket(segment, b"%d" % route, 10 + generation, 1, SECOND) for route in range(4000)]
        used.append(segment.stats()["state_bytes"])
    assert segment.stats()["state"] == len(held) == 4000
    # A table that was filled up by what went is made anew in another place, and back.
    assert used[-1] == used[5]


INTERVALS = st.one_of(
    st.integers(1, 50), st.integers(1_000_000, 90 * 86400 * SECOND), st.sampled_from([(1 << 63) - 1, YEAR])
)
STEPS = st.one_of(st.integers(0, 40), st.integers(0, 100 * SECOND), st.integers(-5 * SECOND, 5 * YEAR))
SMALL_OR_HUGE = st.one_of(st.integers(0, 20), st.integers(MAX_TOKENS - 5, MAX_TOKENS), st.integers(0, MAX_TOKENS))
ACTIONS = st.tuples(st.sampled_from(["take", "look", "settle"]), st.integers(-(1 << 60), 1 << 60), STEPS, st.booleans())


@given(SMALL_OR_HUGE, SMALL_OR_HUGE, INTERVALS, st.integers(0, 20 * YEAR), st.lists(ACTIONS, max_size=30))
@settings(max_examples=effort.examples(400), deadline=None)
def test_every_answer_is_that_of_exact_arithmetic(
    one: int, other: int, interval: int, created: int, actions: list[tuple[str, int, int, bool]]
) -> None:
    most, fill = max(one, other), min(one, other)
    bucket = TokenBucket(Segment.create(), b"k", most, fill, interval, created_ns=created)
    exact = ExactBucket(most, fill, interval, created)
    now = created
    for action, n, step, small in actions:
        now = max(0, min(now + step, 250 * YEAR))
        n = n % (min(most, 30) + 2) if small else n
        if action == "settle":
            settle_at(bucket, n, now)
            exact.settle(n, now)
        else:
            ours = bucket.take_at(n, now) if action == "take" else look_at(bucket, n, now)
            assert ours == exact.ask(n, now, action == "take")


@pytest.mark.parametrize(
    ("steps", "rounds", "total"), [(1, 2, 5000), (30, 1, 5000 + 29 * 7)], ids=["no refill", "29 refills"]
)
def test_64_takers_in_4_processes_get_exactly_what_is_allowed(steps: int, rounds: int, total: int) -> None:
    # A taker asks 40 times before it moves the clock one tick, so no refill is lost to the cap; all together ask for
    # more than there is, so the bucket is empty in the end, whatever their order.
    segment = Segment.create()
    bucket = TokenBucket(segment, b"shared", 5000, 7, 1000, created_ns=0)
    command = [sys.executable, "-c", TAKERS, str(segment.fd), str(steps)]
    allowed = 0
    for _ in range(rounds):
        takers = [subprocess.Popen(command, pass_fds=[segment.fd], stdout=subprocess.PIPE, text=True) for _ in range(4)]
        allowed += sum(int(taker.communicate(timeout=60)[0]) for taker in takers)
        assert all(taker.returncode == 0 for taker in takers)
    assert allowed == total
    assert look_at(bucket, 1, 0)[0] is False


def lock_offset(segment: Segment, level: int) -> int:
    """Where the lock of the bucket with this level lies in the segment's file: three words before the level."""
    text = os.pread(segment.fd, SIZE, 0)
    assert text.count(struct.pack("=q", level)) == 1
    return text.index(struct.pack("=q", level)) - 24


@pytest.mark.parametrize("reaped", [True, False], ids=["gone", "zombie"])
def test_a_taker_that_died_holding_the_lock_blocks_nobody(segment: Segment, reaped: bool) -> None:
    level = 0x51A7E5
    bucket = bucket_of(segment, level, 1, SECOND)
    dead = subprocess.Popen(["sleep", "60"])
    os.pwrite(segment.fd, struct.pack("=Q", holder_of(dead.pid)), lock_offset(segment, level))
    dead.kill()
    if reaped:
        dead.wait()
    else:
        os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert bucket.take_at(1, 0) == (True, level, level - 1, 1)
    finally:
        dead.wait()
