"""What virtual keys have spent: each batch has what came since the last one, and nothing is in two of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_drivers.account import count_request, spend
from headgate_engine.limit.account import ACCOUNT, SPEND, SpendCell, UsageAccount
from headgate_engine.limit.spending import BATCHES, SpendBatches, batch_of, minute_of, uncarried
from headgate_engine.shared.segment import Segment

NAMES = ("k", "t", "m", "2028-02-28")


@pytest.fixture
def segment() -> Segment:
    return Segment.create(state_bytes=1 << 20)


def value_of(segment: Segment, prefix: bytes) -> bytes:
    return next(value for key, _, value in segment.entries() if key.startswith(prefix))


def test_a_cell_gives_what_it_has_once(segment: Segment) -> None:
    cell, again = SpendCell(segment, NAMES), SpendCell(segment, NAMES)
    count_request(cell)
    spend(cell, 3, 4, 5)
    spend(again, 1, 1, 10**15)
    assert cell.take(1) == (1, 2, 4, 5, 10**15 + 5)
    assert again.take(2) == (0, 0, 0, 0, 0)


def test_a_batch_has_room_for_what_it_has_and_no_more(segment: Segment) -> None:
    cell = SpendCell(segment, NAMES)
    for number in range(1, 5):
        for _ in range(5):
            spend(cell, 0, 0, 1 << 61)
        assert cell.take(number)[4] == 2**63 - 1
    spend(cell, 0, 0, 7)
    assert cell.take(9)[4] == 7


def test_numbers_of_batches_grow(segment: Segment) -> None:
    cell, batches = SpendCell(segment, NAMES), SpendBatches(segment)
    assert (batches.last, batches.begin(), SpendBatches(segment).begin(), batches.last) == (0, 1, 2, 2)
    assert batch_of(value_of(segment, BATCHES)) == 2
    spend(cell, 1, 1, 1)
    assert any(cell.take(5))
    for number in (5, 4, 0, -1):
        with pytest.raises(ValueError):
            cell.take(number)


@given(st.lists(st.one_of(st.just(None), st.integers(0, 3)), max_size=30))
def test_what_is_in_no_batch_is_what_the_ledger_does_not_have(events: list[int | None]) -> None:
    """Whether the last batch came to be written or not: written and left make up what was spent."""
    segment = Segment.create(state_bytes=1 << 17)
    cell, batches = SpendCell(segment, NAMES), SpendBatches(segment)
    total, known, written, doubtful = 0, 0, 0, 0
    for event in events:
        if event is not None:
            spend(cell, 0, 0, event)
            total += event
            continue
        # The ledger begins a batch when the one before is written.
        written, known = written + doubtful, batches.last
        amounts = cell.take(batches.last + 1)
        doubtful = amounts[4]
        if any(amounts):
            batches.begin()
    value = value_of(segment, SPEND)
    assert written + uncarried(value, known)[4] == total
    assert written + doubtful + uncarried(value, batches.last)[4] == total


def test_other_slots_are_refused(segment: Segment) -> None:
    account = UsageAccount(segment, "key", "k")
    assert minute_of(value_of(segment, ACCOUNT)) == (0, (0, 0, 0))
    assert account.name == "k"
    for read in (minute_of, lambda value: uncarried(value, 1), batch_of):
        with pytest.raises(ValueError):
            read(b"x")
