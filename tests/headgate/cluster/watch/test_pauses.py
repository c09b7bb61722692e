"""Pauses between tries."""

from __future__ import annotations

from headgate.cluster.watch.pauses import LEAST_SECONDS, MOST_SECONDS, Pauses


def test_pauses_double_to_a_bound_and_begin_anew() -> None:
    pauses = Pauses(lambda: 0.0)
    assert [pauses.next() for _ in range(4)] == [LEAST_SECONDS * factor for factor in (1, 2, 4, 8)]
    assert [pauses.next() for _ in range(100)][-1] == MOST_SECONDS
    pauses.reset()
    assert pauses.next() == LEAST_SECONDS


def test_chance_shortens_them_by_up_to_a_half() -> None:
    assert Pauses(lambda: 1.0).next() == LEAST_SECONDS / 2
