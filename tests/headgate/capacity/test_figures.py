"""What a step has found, of several processes together."""

from __future__ import annotations

import pytest

from headgate.capacity.figures import Second, StepFigures, merged_seconds, told_of
from headgate_drivers.load import answered, lost
from headgate_engine.load.ledger import LoadLedger

MS = 1_000_000


def ledger(*latencies_ms: int) -> LoadLedger:
    found = LoadLedger()
    for value in latencies_ms:
        answered(found, 0, value * MS)
    lost(found, 0, 5 * MS, "status 500", False)
    return found


def test_processes_are_added() -> None:
    step = StepFigures(10, 2.0)
    step.add(told_of(ledger(1, 2), 0.5, 1.0))
    step.add(told_of(ledger(3), 0.8, 1.0))
    assert (step.good, step.in_time, step.failed, step.total) == (3, 3, 2, 5)
    assert (step.latency.count, step.latency.most) == (3, 3 * MS)
    assert step.errors == {"status 500": 2}
    assert (step.achieved, step.error_share) == (1.5, 0.4)
    assert step.generator_cpu_s == pytest.approx(1.3)
    assert step.generator_busy == pytest.approx(0.8)


def test_late_answers_are_good_and_not_achieved() -> None:
    found = LoadLedger()
    found.until_ns = 10 * MS
    answered(found, 0, 10 * MS)
    answered(found, 0, 11 * MS)
    step = StepFigures(10, 1.0)
    step.add(told_of(found, 0.1, 1.0))
    assert (step.good, step.achieved) == (2, 1.0)


def test_a_step_without_requests_has_no_errors() -> None:
    assert StepFigures(0, 1.0).error_share == 0.0


def test_seconds_of_processes_are_one_row() -> None:
    rows = merged_seconds([Second(1, 5, 0, 1, 9, 9), Second(0, 1, 1, 2, 3, 4), Second(1, 7, 2, 3, 4, 20)])
    assert rows == [Second(0, 1, 1, 2, 3, 4), Second(1, 12, 2, 3, 9, 20)]
