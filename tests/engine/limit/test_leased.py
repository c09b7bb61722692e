"""Leased buckets: what a replica may spend of a store, and what it tells the store."""

from __future__ import annotations

from typing import Any

import pytest

from headgate_drivers.requests import look_at, settle_at
from headgate_engine.limit.leased import LeasedBucket, StoreState
from headgate_engine.shared.segment import Segment

SECOND = 1_000_000_000
HOUR_US = 3600 * 1_000_000
NUMBERS = (100, 100, 3600 * SECOND)
START = 1000 * SECOND


def bucket(*, local: bool = False, tokens: bool = False, share: int = 10, replicas: int = 1, **more: Any) -> LeasedBucket:
    segment = more["segment"] if "segment" in more else Segment.create(state_bytes=1 << 20, series_bytes=1 << 20)
    return LeasedBucket(segment, StoreState(local), b"k", more.get("numbers", NUMBERS), tokens, (share, replicas))


def lease(one: LeasedBucket, granted: int, left: int, *, tick: int = 0, seq: int = 1, epoch: int = 7, at: int = START) -> None:
    one.told(at, (granted, left, tick, HOUR_US, seq, epoch))


def test_a_lease_is_spent_to_its_end() -> None:
    one = bucket()
    assert one.take_at(1, START)[0] is False
    lease(one, 3, 97)
    assert one.take_at(1, START) == (True, 100, 99, 3600)
    assert [one.take_at(1, START + SECOND)[0] for _ in range(3)] == [True, True, False]
    lease(one, 2, 95, seq=2)
    assert one.take_at(3, START)[0] is False
    assert one.take_at(2, START) == (True, 100, 95, 3600)


def test_workers_share_a_lease() -> None:
    segment = Segment.create(state_bytes=1 << 20, series_bytes=1 << 20)
    one, other = bucket(segment=segment), bucket(segment=segment)
    lease(one, 3, 97)
    assert [found.take_at(1, START)[0] for found in (other, one, other, one)] == [True, True, True, False]


def test_a_lease_ends_with_its_window() -> None:
    one = bucket()
    lease(one, 5, 95)
    end = START + 3600 * SECOND
    assert one.take_at(1, end - 1)[0] is True
    assert one.take_at(1, end)[0] is False
    assert one.give_back(end - 1, ended_only=True) == 0
    assert one.give_back(end, ended_only=True) == 4
    assert one.known(end) == (7, 1, 0, 0)
    lease(one, 2, 98, tick=1, seq=2, at=end)
    lease(one, 50, 40, tick=0, seq=1, at=START)  # an answer that comes late
    assert [one.take_at(1, end)[0] for _ in range(3)] == [True, True, False]
    assert one.known(end) == (7, 2, 1, HOUR_US)


def test_an_answer_of_another_server_ends_the_lease() -> None:
    one = bucket()
    lease(one, 5, 95, tick=3, seq=9)
    lease(one, 1, 50, tick=0, seq=2, epoch=8)
    assert one.give_back(START, ended_only=False) == 1
    assert one.known(START)[:3] == (8, 2, 0)


def test_what_is_left_goes_back_once() -> None:
    one = bucket()
    lease(one, 5, 95)
    assert one.give_back(START, ended_only=False) == 5
    assert one.give_back(START, ended_only=False) == 0
    assert one.take_at(1, START)[0] is False


def test_an_account_of_tokens() -> None:
    one = bucket(tokens=True)
    lease(one, 0, 50)
    assert look_at(one, 1, START) == (True, 100, 50, 3600)
    settle_at(one, -18, START)
    assert one.owes
    assert look_at(one, 1, START)[2] == 32
    assert one.report(START) == 18
    assert not one.owes
    one.unreport(18)
    lease(one, 0, 40, seq=2)  # another replica has used 10
    assert look_at(one, 1, START)[2] == 22
    settle_at(one, -1000, START)
    assert look_at(one, 1, START)[0] is False
    assert one.report(START) == 1018
    settle_at(one, 5, START)
    assert one.report(START) == -5
    assert one.take_at(3, START)[0] is True
    assert one.report(START) == 3


def test_what_was_used_long_without_a_store_is_forgotten() -> None:
    one = bucket(tokens=True)
    lease(one, 0, 50)
    settle_at(one, -18, START)
    assert one.report(START + 3 * 3600 * SECOND) == 0


def test_an_account_grows_old() -> None:
    one = bucket(tokens=True)
    assert one.unknown(START, SECOND)
    lease(one, 0, 50)
    assert not one.unknown(START + SECOND, SECOND)
    assert one.unknown(START + SECOND + 1, SECOND)
    assert one.unknown(START + 3600 * SECOND, 2 * 3600 * SECOND)
    assert look_at(one, 1, START + 3600 * SECOND)[0] is True
    assert one.idle_ns(START + 3601 * SECOND) == SECOND


def test_a_replica_that_limits_by_itself() -> None:
    one = bucket(local=True, replicas=2)
    lease(one, 20, 80)
    assert all(one.take_at(1, START)[0] for _ in range(20))
    one.state.set_down(True)
    # Half of the limit, of which 20 are spent.
    taken = [one.take_at(1, START) for _ in range(40)]
    assert [found[0] for found in taken].count(True) == 30
    assert taken[0][1:3] == (50, 29)
    assert look_at(one, 1, START)[0] is False


def test_a_replica_that_denies_spends_its_lease_first() -> None:
    one = bucket()
    lease(one, 2, 98)
    one.state.set_down(True)
    assert [one.take_at(1, START)[0] for _ in range(3)] == [True, True, False]


def test_decisions_of_the_store() -> None:
    one = bucket(replicas=4)
    lease(one, 0, 99)
    assert one.exact(START, 1) == (True, 100, 99, 3600)
    assert one.exact(START, 0) == (False, 100, 0, 3600)
    assert one.alone.take_at(25, START)[0] is False, "25 is a quarter, of which 1 is spent"
    assert one.alone.take_at(24, START)[0] is True


def test_numbers() -> None:
    assert (bucket(share=1000).share, bucket(replicas=1000).alone.max_tokens) == (100, 1)
    assert bucket(numbers=(0, 0, SECOND)).share == 1
    for share, replicas in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="1 or more"):
            bucket(share=share, replicas=replicas)
    with pytest.raises(ValueError, match="refill amount"):
        bucket(numbers=(1, 2, SECOND))
    one = LeasedBucket.__new__(LeasedBucket)
    assert one.take_at(1, START)[0] is False
