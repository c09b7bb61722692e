"""The list of one worker: who gets a request."""

from __future__ import annotations

import os

import pytest

from headgate.trace.watchers import Watcher, Watchers, is_read
from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.segment import Segment


class Rig:
    """Two workers' lists over the same claims."""

    def __init__(self) -> None:
        self.segment = Segment.create()
        self.claims = SlotClaims(self.segment, b"k\0")
        self.current: list[object] = [None, None]
        self.lists = [Watchers(self.claims, lambda found, i=i: self.current.__setitem__(i, found)) for i in range(2)]

    def offer(self, number: int) -> int:
        """Offer a watcher to both; the descriptor that its events come from."""
        reader, writer = os.pipe()
        assert self.claims.offer(number)
        for one in self.lists:
            one.add(Watcher(number, os.dup(writer), None))
        os.close(writer)
        return reader


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_worker_knows_when_nobody_waits(rig: Rig) -> None:
    assert rig.current == [None, None]
    reader = rig.offer(1)
    assert rig.current == rig.lists
    for one in rig.lists:
        one.drop(1)
        one.drop(1)
    assert rig.current == [None, None]
    assert os.read(reader, 1) == b"", "nobody holds the writing end any more"
    os.close(reader)


def test_one_served_elsewhere_is_forgotten(rig: Rig) -> None:
    reader = rig.offer(1)
    assert rig.claims.take(1)
    assert rig.lists[0].take(None) is None
    assert rig.current[0] is None
    assert rig.current[1] is not None
    os.close(reader)


def test_one_whose_reader_is_gone_is_passed_over(rig: Rig) -> None:
    gone, there = rig.offer(1), rig.offer(2)
    os.close(gone)
    assert rig.lists[0].take(None) is None  # it has no descriptions of plans, so neither gets a recorder
    assert not rig.claims.offered(1)
    assert rig.current[0] is None
    os.close(there)


def test_the_other_end_of_a_pipe_is_looked_at() -> None:
    reader, writer = os.pipe()
    assert is_read(writer)
    os.close(reader)
    assert not is_read(writer)
    os.close(writer)
