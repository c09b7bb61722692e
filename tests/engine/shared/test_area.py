"""Areas of the shared segment: entries that come and go, blocks that are used again, a table that grows."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate_engine.shared.claims import SlotClaims
from headgate_engine.shared.segment import Segment

LEAST_STATE = 65536


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.booleans()), max_size=300))
def test_slots_that_come_and_go_are_never_mixed_up(actions: list[tuple[int, int, bool]]) -> None:
    segment = Segment.create(state_bytes=LEAST_STATE)
    held: dict[bytes, SlotClaims] = {}
    offered: dict[bytes, set[int]] = {}
    for number, length, drop in actions:
        key = b"%d" % number + b"x" * (length * 60)
        if drop:
            held.pop(key, None)
            offered.pop(key, None)
            continue
        claims = held.setdefault(key, SlotClaims(segment, key))
        claims.offer(number + 1)
        offered.setdefault(key, set()).add(number + 1)
        del claims
    assert len(segment) == len(held)
    for key, claims in held.items():
        assert {number for number in range(1, 50) if claims.offered(number)} == offered[key]
    assert {key for key, _, _ in segment.entries()} == set(held)


def test_the_table_grows_and_finds_everything() -> None:
    segment = Segment.create()
    kept = {b"%d" % number: SlotClaims(segment, b"%d" % number) for number in range(5000)}
    for number in range(0, 5000, 2):
        del kept[b"%d" % number]
    kept |= {b"new %d" % number: SlotClaims(segment, b"new %d" % number) for number in range(2500)}
    for at, claims in enumerate(kept.values()):
        claims.offer(at + 1)
    assert all(SlotClaims(segment, key).offered(at + 1) for at, key in enumerate(kept))
    assert len(segment) == 5000


def test_what_is_used_again_begins_empty() -> None:
    segment = Segment.create()
    first = SlotClaims(segment, b"a")
    for number in range(1, 64):
        first.offer(number)
    del first
    second = SlotClaims(segment, b"b")
    assert not any(second.offered(number) for number in range(1, 64))
