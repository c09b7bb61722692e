"""What a run counts."""

from __future__ import annotations

from headgate_drivers.load import answered, lost
from headgate_engine.load.ledger import LoadLedger

MS = 1_000_000


def test_an_answer_counts_from_when_it_was_due() -> None:
    ledger = LoadLedger()
    answered(ledger, 10 * MS, 35 * MS)
    assert (ledger.good, ledger.failed) == (1, 0)
    assert ledger.latency.most == ledger.window.most == 25 * MS


def test_what_waited_has_a_latency_and_what_failed_at_once_has_none() -> None:
    ledger = LoadLedger()
    lost(ledger, 0, MS, "status 503", False)
    lost(ledger, 0, 900 * MS, "timeout", True)
    lost(ledger, 0, 800 * MS, "timeout", True)
    assert ledger.errors == {"status 503": 1, "timeout": 2}
    assert (ledger.failed, ledger.latency.count, ledger.latency.most) == (3, 2, 900 * MS)


def test_nothing_of_the_warm_up_counts() -> None:
    ledger = LoadLedger()
    ledger.since_ns = 100 * MS
    answered(ledger, 99 * MS, 500 * MS)
    lost(ledger, 99 * MS, 500 * MS, "timeout", True)
    assert (ledger.good, ledger.failed, ledger.errors, ledger.latency.count) == (0, 0, {}, 0)
    answered(ledger, 100 * MS, 500 * MS)
    assert ledger.good == 1


def test_kinds_of_errors_have_a_bound() -> None:
    ledger = LoadLedger()
    for number in range(1000):
        lost(ledger, 0, 1, f"protocol: {number}", False)
    assert len(ledger.errors) == 65
    assert ledger.errors["other"] == 1000 - 64
    assert sum(ledger.errors.values()) == ledger.failed == 1000
