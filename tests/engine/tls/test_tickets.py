"""Keys of session tickets."""

from __future__ import annotations

import pytest

from headgate_engine.tls.tickets import TicketKeys


def test_all_workers_have_the_same_keys() -> None:
    """Whether a worker has lived through the periods, or begins in a later one with what the supervisor has by then."""
    old, supervisor = TicketKeys(b"s" * 32, 8, 60), TicketKeys(b"s" * 32, 8, 60)
    for number in range(9, 14):
        old.move(number * 60)
    supervisor.move(13 * 60 + 30)
    assert old.names() == supervisor.names()


def test_a_period_goes_and_does_not_come_back() -> None:
    keys = TicketKeys(b"s" * 32, 10, 60)
    first = keys.names()
    assert first[0] == first[1]
    keys.move(10 * 60 + 59)
    assert keys.names() == first
    keys.move(11 * 60)
    second = keys.names()
    assert (second[1], keys.number) == (first[0], 11)
    keys.move(10 * 60)
    assert keys.names() == second
    keys.move(20 * 60)
    assert keys.number == 20
    assert first[0] not in keys.names()


def test_what_is_given_makes_the_same_keys() -> None:
    keys = TicketKeys(b"s" * 32, TicketKeys.number_now() - 3)
    number, secret = keys.given()
    assert number >= TicketKeys.number_now() - 1
    assert secret != b"s" * 32
    assert TicketKeys(secret, number).names()[0] == keys.names()[0]


@pytest.mark.parametrize(("secret", "period"), [(b"", 60), (b"s" * 31, 60), (b"s" * 32, 0), (b"s" * 32, -1)])
def test_what_is_refused(secret: bytes, period: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        TicketKeys(secret, 1, period)


def test_many_periods_at_once_are_those_one_by_one() -> None:
    one, other = TicketKeys(b"s" * 32, 8, 60), TicketKeys(b"s" * 32, 8, 60)
    for number in range(9, 109):
        one.move(number * 60)
    other.move(108 * 60)
    assert one.names() == other.names()
    assert one.number == other.number == 108


def test_a_clock_that_goes_ahead_by_decades() -> None:
    """The periods in between are not gone through, and all workers that see the same have the same keys."""
    workers = [TicketKeys(b"s" * 32, 0) for _ in range(2)]
    before = workers[0].names()
    for worker in workers:
        worker.move(7200 * 10**15)
    assert workers[0].number == 10**15
    assert workers[0].names() == workers[1].names()
    assert not set(before) & set(workers[0].names())
    for worker in workers:
        worker.move(7200 * (10**15 + 1))
    assert workers[0].names() == workers[1].names()
    assert len(set(workers[0].names())) == 2
