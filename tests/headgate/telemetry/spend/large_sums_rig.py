"""What every ledger has to sum up: more than a machine's integers have room for."""

from __future__ import annotations

from headgate.telemetry.spend.rows import Batch, LedgerStore, SpendRow, SpendTotal

# 4 million dollars and one picodollar.
LARGE = 4 * 10**18 + 1


def check_large_sums(ledger: LedgerStore, days: list[str]) -> None:
    ledger.add([SpendRow(day, "a", "t", "m", 1, 2, 10**12, 3, LARGE) for day in days], Batch("w", 1), "2020-01-01")
    n = len(days)
    assert n * LARGE > 2**64
    assert ledger.totals(days[0], days[-1]) == [SpendTotal("a", "t", n, n * (10**12 + 3), n * LARGE)]
    amounts = (n, 2 * n, n * 10**12, 3 * n, n * LARGE)
    assert ledger.read(days[0], days[-1], ("key", "team")) == [("a", "t", *amounts)]
    assert ledger.read(days[0], days[-1], ()) == [amounts]
    assert ledger.read("2020-01-01", "2020-01-02", ()) == []
