"""Claims: each number on offer goes to one process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from headgate_engine.shared.claims import SLOTS, SlotClaims
from headgate_engine.shared.segment import Segment

TAKERS = """
import sys
from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.segment import Segment
claims = SlotClaims(Segment.attach(int(sys.argv[1])), b"k\\0")
sys.stdin.readline()
print(*(number for number in range(1, 60) if claims.take(number)))
"""


@pytest.fixture
def segment() -> Segment:
    return Segment.create()


def test_a_number_on_offer_is_taken_once(segment: Segment) -> None:
    claims = SlotClaims(segment, b"k\0")
    assert not claims.offered(7)
    assert not claims.take(7)
    assert claims.offer(7)
    assert claims.offered(7)
    assert claims.take(7)
    assert not claims.take(7)
    assert not claims.offered(7)


def test_numbers_of_one_slot_exclude_each_other(segment: Segment) -> None:
    claims = SlotClaims(segment, b"k\0")
    assert claims.offer(1)
    assert not claims.offer(1 + SLOTS)
    assert not claims.take(1 + SLOTS)
    assert claims.take(1)
    assert claims.offer(1 + SLOTS)


def test_zero_is_no_number(segment: Segment) -> None:
    claims = SlotClaims(segment, b"k\0")
    with pytest.raises(ValueError):
        claims.offer(0)
    assert not claims.take(0)
    assert not claims.offered(0)


def test_of_many_processes_one_takes_it(segment: Segment) -> None:
    claims = SlotClaims(segment, b"k\0")
    for number in range(1, 60):
        assert claims.offer(number)
    takers = [
        subprocess.Popen(
            [sys.executable, "-c", TAKERS, str(segment.fd)], pass_fds=(segment.fd,),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]
    for taker in takers:
        assert taker.stdin is not None
        taker.stdin.write("\n")
        taker.stdin.flush()
    taken = [int(word) for taker in takers for word in taker.communicate()[0].split()]
    assert sorted(taken) == list(range(1, 60))
