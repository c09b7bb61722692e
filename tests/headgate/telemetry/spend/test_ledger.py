"""The ledger of virtual keys: nothing is added twice to accounts whose keys go and come back."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.headgate.telemetry.spend.large_sums_rig import check_large_sums

from headgate.ir.request_log import RequestLogStore
from headgate.ir.virtual_keys import KeyRecord, VirtualKeys
from headgate.telemetry.spend import ledger
from headgate.telemetry.spend.ledger import SpendLedger
from headgate.telemetry.spend.rows import Batch, SpendRow
from headgate.telemetry.spend.sqlite import SqliteLedger
from headgate_drivers.account import settle_at, spend
from headgate_engine.limit.account import SpendCell, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment

NOON = datetime(2028, 2, 28, 12, 0, 30, tzinfo=UTC)
NOON_S = int(NOON.timestamp())


def keys(*names: str) -> VirtualKeys:
    return VirtualKeys(keys=tuple(KeyRecord(name=name, digest=name.encode(), metadata="{}") for name in names))


def opened(segment: Segment, path: Path) -> SpendLedger:
    return SpendLedger(segment, RequestLogStore(path=str(path)))


def use(segment: Segment, name: str) -> UsageAccount:
    """Use what a request of a worker does: 18 tokens for 78 picodollars."""
    account = UsageAccount(segment, "key", name)
    settle_at(UsageLimits(account, []), (0, 0), (18, 78), NOON_S)
    spend(SpendCell(segment, (name, "", "real", "2028-02-28")), 11, 7, 78)
    return account


def used(account: UsageAccount) -> tuple[int, int]:
    day = account.state(NOON_S)["day"]
    return day["tokens"], day["dollars"]


@pytest.fixture
def segment() -> Segment:
    return Segment.create(state_bytes=1 << 20)


def test_a_key_that_goes_and_comes_back_has_used_what_it_had(segment: Segment, tmp_path: Path) -> None:
    """As when a configuration without it is not taken: workers go on with the key, and with its account."""
    found = opened(segment, tmp_path / "keys.db")
    found.watch(keys("a", "b"))
    found.carry(NOON)
    cell = SpendCell(segment, ("a", "", "real", "2028-02-28"))
    account = use(segment, "a")
    found.carry(NOON)
    for wanted in (keys("b"), keys("a", "b"), None, keys("a")):
        found.watch(wanted)
        found.carry(NOON)
        assert used(account) == (18, 78)
    assert cell.take(1 << 40) == (0, 0, 0, 0, 0)


def test_a_new_process_has_what_the_database_knows_once(segment: Segment, tmp_path: Path) -> None:
    found = opened(segment, tmp_path / "keys.db")
    found.watch(keys("a"))
    found.carry(NOON)
    cell = SpendCell(segment, ("a", "", "real", "2028-02-28"))
    use(segment, "a")
    found.carry(NOON)
    assert cell.take(1 << 40) == (0, 0, 0, 0, 0)
    other = Segment.create(state_bytes=1 << 20)
    again = opened(other, tmp_path / "keys.db")
    again.watch(keys("a"))
    for _ in range(3):
        again.carry(NOON)
    assert used(UsageAccount(other, "key", "a")) == (18, 78)


def test_accounts_of_keys_that_are_gone_are_let_go(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MOST_GONE", 2)
    found = opened(segment, tmp_path / "keys.db")
    for number in range(10):
        found.watch(keys(f"k{number}"))
    held = [key for key, _, _ in segment.entries() if key.startswith(b"account\0")]
    # The one that is wanted, the one before, and two.
    assert len(held) == 4


MILLION = 10**18      # picodollars


def test_sums_of_any_size_are_exact_and_accounts_stop_at_their_highest(segment: Segment, tmp_path: Path) -> None:
    store = RequestLogStore(path=str(tmp_path / "keys.db"))
    days = [f"2028-02-{day:02d}" for day in range(1, 29)]
    check_large_sums(SqliteLedger(store), days)
    found = SpendLedger(segment, store)
    found.watch(keys("a"))
    for _ in range(2):
        found.carry(NOON)
        month = UsageAccount(segment, "key", "a").state(NOON_S)["month"]
        assert (month["dollars"], month["requests"]) == (2**63 - 1, 28)


def test_a_day_that_has_no_room_stops_and_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ledger = SqliteLedger(RequestLogStore(path=str(tmp_path / "keys.db")))
    for batch in range(1, 5):
        ledger.add([SpendRow("2028-02-28", "a", "", "m", 1, 1, 5, 5, 5 * MILLION)], Batch("w", batch), "2027-01-01")
    assert ledger.read("2028-02-28", "2028-02-28", ("key",)) == [("a", 4, 4, 20, 20, 2**63 - 1)]
    assert caplog.text.count("counts no further") == 1
