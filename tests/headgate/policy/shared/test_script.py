"""The script of shared limits at a real Redis server, beside a bucket that is counted by hand."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.redis_rig import RedisServer, needs_redis

from headgate.document.secret import Secret
from headgate.ir.shared_state import SharedState
from headgate.net.redis_store import RedisStore
from headgate.policy.shared.script import ANSWER, CHARGE, LEASE, RETURN, SCRIPT, TAKE, Question

pytestmark = needs_redis

HOUR_US = 3600 * 1_000_000
EPOCH = 5


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path)
    yield found
    found.stop()


def question(operation: int, number: int, **more: Any) -> Question:
    numbers = {"most": 100, "fill": 100, "every_us": HOUR_US, "back": 0, "back_tick": 0, "epoch": -1, "seq": 0,
               "rest_us": 0, "joined": 0, **more}  # fmt: skip
    return Question(operation=operation, number=number, **numbers)


class Asking:
    """Calls of the script at one bucket, or several."""

    def __init__(self, redis: RedisServer) -> None:
        self.redis = redis
        self.loop = asyncio.new_event_loop()
        url = f"redis://127.0.0.1:{redis.port}"
        self.store = RedisStore(SharedState(url=Secret(url), place="", timeout_ms=30_000), SCRIPT)

    def all(self, *questions: Question, epoch: int = EPOCH) -> list[list[int]]:
        keys = [b"k%d" % number for number in range(len(questions))]
        values = [epoch, *(value for one in questions for value in one)]
        answer = self.loop.run_until_complete(self.store.run(keys, values))
        return [answer[at : at + ANSWER] for at in range(0, len(answer), ANSWER)]

    def __call__(self, operation: int, number: int, *, new_epoch: int = EPOCH, **more: Any) -> list[int]:
        return self.all(question(operation, number, **more), epoch=new_epoch)[0]

    def pass_by(self, intervals: int) -> None:
        """Let time go by for the bucket."""
        self.redis.ask("HINCRBY", "k0", "born", str(-intervals * HOUR_US))

    def close(self) -> None:
        self.loop.run_until_complete(self.store.aclose())
        self.loop.close()


@pytest.fixture
def asking(redis: RedisServer) -> Iterator[Asking]:
    found = Asking(redis)
    yield found
    found.close()


def test_tokens_are_taken_all_or_none(asking: Asking) -> None:
    granted, left, tick, rest, seq, epoch = asking(TAKE, 60)
    assert (granted, left, tick, seq, epoch) == (60, 40, 0, 1, EPOCH)
    assert 0 < rest <= HOUR_US
    assert asking(TAKE, 41)[:2] == [0, 40]
    assert asking(TAKE, 40)[:2] == [40, 0]
    assert asking(TAKE, 1)[:2] == [0, 0]
    assert asking(TAKE, 0)[:2] == [0, 0]


def test_a_refusal_ends_a_request_and_not_the_next(asking: Asking) -> None:
    small = {"most": 1, "fill": 1}
    asked = (question(TAKE, 1), question(TAKE, 1, joined=1, **small), question(TAKE, 1, joined=1))
    assert [one[0] for one in asking.all(*asked)] == [1, 1, 1]
    assert [one[0] for one in asking.all(*asked, question(TAKE, 1))] == [1, 0, -1, 1]
    assert [one[1] for one in asking.all(*(question(RETURN, 0, most=one.most, fill=one.fill) for one in asked))] == [98, 0, 99]


def test_a_lease_is_half_of_what_is_there_at_most(asking: Asking) -> None:
    assert asking(LEASE, 10)[:2] == [10, 90]
    assert asking(LEASE, 100)[:2] == [45, 45]
    assert [asking(LEASE, 40)[0] for _ in range(7)] == [23, 11, 6, 3, 1, 1, 0]


def test_leases_come_back_into_their_window(asking: Asking) -> None:
    assert asking(LEASE, 10)[:2] == [10, 90]
    assert asking(RETURN, 0, back=4, epoch=EPOCH)[:2] == [0, 94]
    assert asking(RETURN, 0, back=4, epoch=EPOCH + 1)[1] == 94, "of another server"
    # The refill has had no room for what comes back late.
    asking.pass_by(1)
    assert asking(RETURN, 0, back=6, back_tick=0, epoch=EPOCH)[1:3] == [100, 1]
    assert asking(TAKE, 50)[1] == 50
    assert asking(RETURN, 0, back=6, back_tick=0, epoch=EPOCH)[1] == 50


def test_leases_of_the_last_window_come_back_where_the_refill_left_room(asking: Asking) -> None:
    numbers = {"fill": 20}
    assert asking(LEASE, 30, **numbers)[1] == 70
    asking.pass_by(1)
    assert asking(TAKE, 40, **numbers)[1] == 50
    assert asking(RETURN, 0, back=7, back_tick=0, epoch=EPOCH, **numbers)[1] == 57
    assert asking(RETURN, 0, back=7, back_tick=0, epoch=EPOCH, **numbers)[1] == 60, "10 had room"
    asking.pass_by(1)
    assert asking(RETURN, 0, back=7, back_tick=0, epoch=EPOCH, **numbers)[1] == 80, "too late"


def test_refills(asking: Asking) -> None:
    assert asking(TAKE, 100, fill=30)[1] == 0
    asking.pass_by(2)
    assert asking(TAKE, 10, fill=30)[1:3] == [50, 2]
    asking.pass_by(1000)
    assert asking(TAKE, 10, fill=30)[1:3] == [90, 1002]


def test_accounts(asking: Asking) -> None:
    assert asking(CHARGE, 0)[1] == 100
    assert asking(CHARGE, 30)[1] == 70
    assert asking(CHARGE, -10)[1] == 80
    assert asking(CHARGE, -1000)[1] == 100
    assert asking(CHARGE, 1000)[1] == 0


def test_a_server_without_memory_gives_nothing_until_the_window_ends(asking: Asking) -> None:
    known = {"epoch": EPOCH, "seq": 9, "rest_us": HOUR_US // 2}
    asked = asking(LEASE, 10, new_epoch=77, **known)
    assert (asked[0], asked[1], asked[5]) == (0, 0, 77)
    assert HOUR_US // 2 - 60_000_000 < asked[3] <= HOUR_US // 2, "the window ends as it would have ended"
    assert asked[4] == 10
    # The other replica, which knows the same of before.
    assert asking(LEASE, 10, new_epoch=78, **known)[:2] == [0, 0]
    asking.pass_by(1)
    assert asking(LEASE, 10, epoch=78, seq=10, rest_us=0)[0] == 10


def test_a_server_that_went_back_in_time(asking: Asking) -> None:
    for _ in range(3):
        epoch = asking(TAKE, 1)[5]
    assert asking(TAKE, 1, epoch=epoch, seq=3, rest_us=1)[:2] == [1, 96]
    assert asking(TAKE, 1, epoch=epoch, seq=9, rest_us=HOUR_US)[:2] == [0, 0]
    assert asking(TAKE, 1, epoch=epoch, seq=9, rest_us=0)[0] == 0


def test_a_replica_whose_window_is_over_knows_nothing(asking: Asking) -> None:
    assert asking(TAKE, 1, epoch=EPOCH, seq=9, rest_us=0)[:2] == [1, 99]


def test_keys_go_when_they_would_be_full(asking: Asking, redis: RedisServer) -> None:
    asking(TAKE, 50, fill=10)
    assert 6 * 3600_000 < int(redis.ask("PTTL", "k0")) <= 7 * 3600_000
    asking(TAKE, 1, fill=0)
    redis.ask("DEL", "k0")
    asking(TAKE, 1, fill=0)
    assert redis.ask("PTTL", "k0") == "-1"


def test_large_numbers(asking: Asking) -> None:
    most = 2**53
    assert asking(CHARGE, 1, most=most, fill=1)[1] == most - 1
    assert asking(CHARGE, 0, most=most, fill=1)[1] == most - 1


@pytest.mark.parametrize("seed", range(5))
def test_replicas_never_spend_more_than_the_bucket_would_have_given(asking: Asking, seed: int) -> None:
    """Three replicas lease, spend, return, and forget; a bucket that sees each spent token never goes below 0."""
    chance = random.Random(seed)
    most, fill = chance.choice([(100, 100), (50, 20), (10, 3), (1, 1)])
    numbers = {"most": most, "fill": fill}
    true, tick = most, 0
    leases = [[0, 0] for _ in range(3)]
    asking(RETURN, 0, **numbers)
    for _ in range(150):
        lease = chance.choice(leases)
        event = chance.random()
        if event < 0.1:
            asking.pass_by(1)
            tick += 1
            true = min(most, true + fill)
        elif event < 0.5:
            back = lease[0] if lease[1] != tick else 0
            granted, _, told, *_ = asking(LEASE, chance.randint(1, 10), back=back, back_tick=lease[1], epoch=EPOCH, **numbers)
            assert told == tick
            lease[:] = [granted + (lease[0] if lease[1] == tick else 0), tick]
        elif event < 0.9 and lease[1] == tick:
            spent = chance.randint(0, lease[0])
            lease[0] -= spent
            true -= spent
        else:
            asking(RETURN, 0, back=lease[0], back_tick=lease[1], epoch=EPOCH, **numbers)
            lease[0] = 0
        assert true >= 0
