"""Keys of session tickets."""

from __future__ import annotations

import pytest

from headgate_drivers.tls import key_names, move_keys
from headgate_engine.tls.tickets import TicketKeys


def test_all_workers_have_the_same_keys() -> None:
    """Whether a worker has lived through the periods, or begins in a later one with what the supervisor has by then."""
    old, supervisor = TicketKeys(b"s" * 32, 8, 60), TicketKeys(b"s" * 32, 8, 60)
    for number in range(9, 14):
        move_keys(old, number * 60)
    move_keys(supervisor, 13 * 60 + 30)
    assert key_names(old) == key_names(supervisor)


def test_a_period_goes_and_does_not_come_back() -> None:
    keys = TicketKeys(b"s" * 32, 10, 60)
    first = key_names(keys)
    assert first[0] == first[1]
    move_keys(keys, 10 * 60 + 59)
    assert key_names(keys) == first
    move_keys(keys, 11 * 60)
    second = key_names(keys)
    assert (second[1], keys.number) == (first[0], 11)
    move_keys(keys, 10 * 60)
    assert key_names(keys) == second
    move_keys(keys, 20 * 60)
    assert keys.number == 20
    assert first[0] not in key_names(keys)


def test_what_is_given_makes_the_same_keys() -> None:
    keys = TicketKeys(b"s" * 32, TicketKeys.number_now() - 3)
    number, secret = keys.given()
    assert number >= TicketKeys.number_now() - 1
    assert secret != b"s" * 32
    assert key_names(TicketKeys(secret, number))[0] == key_names(keys)[0]


@pytest.mark.parametrize(("secret", "period"), [(b"", 60), (b"s" * 31, 60), (b"s" * 32, 0), (b"s" * 32, -1)])
def test_what_is_refused(secret: bytes, period: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TicketKeys(secret, 1, period)


def test_many_periods_at_once_are_those_one_by_one() -> None:
    one, other = TicketKeys(b"s" * 32, 8, 60), TicketKeys(b"s" * 32, 8, 60)
    for number in range(9, 109):
        move_keys(one, number * 60)
    move_keys(other, 108 * 60)
    assert key_names(one) == key_names(other)
    assert one.number == other.number == 108


def test_a_clock_that_goes_ahead_by_decades() -> None:
    """The periods in between are not gone through, and all workers that see the same have the same keys."""
    workers = [TicketKeys(b"s" * 32, 0) for _ in range(2)]
    before = key_names(workers[0])
    for worker in workers:
        move_keys(worker, 7200 * 10**15)
    assert workers[0].number == 10**15
    assert key_names(workers[0]) == key_names(workers[1])
    assert not set(before) & set(key_names(workers[0]))
    for worker in workers:
        move_keys(worker, 7200 * (10**15 + 1))
    assert key_names(workers[0]) == key_names(workers[1])
    assert len(set(key_names(workers[0]))) == 2
