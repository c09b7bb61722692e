"""The ledger in the supervisor: a store that comes back is not added to accounts again, and nothing holds the loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headgate.ir.request_log import RequestLogStore
from headgate.ir.virtual_keys import KeyRecord, VirtualKeys
from headgate.server.spend import SpendKeeper
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend import journal
from headgate.telemetry.spend.sqlite import SqliteLedger
from headgate_drivers.account import settle_at, spend, take_request_at
from headgate_engine.limit.account import SpendCell, UsageAccount, UsageLimits
from headgate_engine.shared.segment import Segment

KEYS = VirtualKeys(keys=(KeyRecord(name="a", digest=b"a", metadata="{}"),))


def gateway(path: Path | None, **how: int) -> Any:
    store = None if path is None else RequestLogStore(path=str(path), **how)
    return SimpleNamespace(process=SimpleNamespace(request_log=store), virtual_keys=KEYS)


def test_a_store_that_is_left_and_taken_up_again_is_not_added_twice(tmp_path: Path) -> None:
    async def run() -> None:
        segment = Segment.create(state_bytes=1 << 20)
        keeper = SpendKeeper(segment)
        one, other = gateway(tmp_path / "one.db"), gateway(tmp_path / "other.db")
        await keeper.prepare(one)
        now = datetime.now(UTC)
        account = UsageAccount(segment, "key", "a")
        settle_at(UsageLimits(account, []), (0, 0), (18, 78), int(now.timestamp()))
        cell = SpendCell(segment, ("a", "", "real", now.strftime("%Y-%m-%d")))
        spend(cell, 11, 7, 78)
        for configuration in (other, one, gateway(None), one, other):
            await keeper.prepare(configuration)
            assert account.state(int(now.timestamp()))["month"]["dollars"] == 78
        assert cell.take(1 << 40) == (0, 0, 0, 0, 0)
        await keeper.stop()

    asyncio.run(run())


def test_a_store_that_is_used_in_another_way_has_the_same_ledger(tmp_path: Path) -> None:
    async def run() -> None:
        segment = Segment.create(state_bytes=1 << 20)
        keeper = SpendKeeper(segment)
        await keeper.prepare(gateway(tmp_path / "keys.db"))
        ledger, now = keeper._ledger, datetime.now(UTC)
        assert ledger is not None
        account = UsageAccount(segment, "key", "a")
        settle_at(UsageLimits(account, []), (0, 0), (18, 78), int(now.timestamp()))
        spend(SpendCell(segment, ("a", "", "real", now.strftime("%Y-%m-%d"))), 11, 7, 78)
        configuration = gateway(tmp_path / "keys.db", max_records=7)
        await keeper.prepare(configuration)
        assert account.state(int(now.timestamp()))["month"]["dollars"] == 78
        assert (keeper._ledger, ledger.store) == (ledger, configuration.process.request_log)
        await keeper.stop()

    asyncio.run(run())


def ended(place: Path, configuration: Any, used: bool) -> tuple[int, bool]:
    """Whether the file of a gateway is there after its end, and says for which ledger it is."""

    async def run() -> Segment:
        segment = Segment.create(state_bytes=1 << 20)
        journal.begin(str(place), 1, segment)
        keeper = SpendKeeper(segment)
        if configuration is not None:
            await keeper.prepare(configuration)
        account = UsageAccount(segment, "key", "a")
        if used:
            take_request_at(UsageLimits(account, []), int(datetime.now(UTC).timestamp()))
            spend(SpendCell(segment, ("a", "", "real", "2028-02-28")), 11, 7, 78)
        await keeper.end()
        return segment

    segment = asyncio.run(run())
    return len(list(place.glob(f"{journal.PREFIX}*"))), journal.is_claimed(segment)


def test_the_end_leaves_a_file_only_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # No ledger has claimed it: no keys, or a start that has failed.
    assert ended(tmp_path, None, used=False)[0] == 0
    assert ended(tmp_path, gateway(tmp_path / "keys.db"), used=False)[0] == 0

    def away(*_: object) -> None:
        raise LogFailure("locked")

    monkeypatch.setattr(SqliteLedger, "totals", away)
    assert ended(tmp_path, gateway(tmp_path / "keys.db"), used=True) == (1, True)


def test_a_gateway_without_keys_loads_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "headgate.telemetry.requests.stores", None)
    asyncio.run(SpendKeeper(Segment.create()).stop())


def test_a_database_that_does_not_answer_does_not_hold_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, found = threading.Event(), threading.Event(), []
    totals = SqliteLedger.totals

    def waits(ledger: SqliteLedger, first: str, last: str) -> Any:
        begun.set()
        found.append(go.wait(30))
        return totals(ledger, first, last)

    async def run() -> None:
        keeper = SpendKeeper(Segment.create(state_bytes=1 << 20))

        async def reload() -> None:
            await asyncio.to_thread(begun.wait, 30)
            await asyncio.gather(keeper.prepare(gateway(tmp_path / "keys.db")), let_go())

        async def let_go() -> None:
            go.set()

        await asyncio.gather(keeper.prepare(gateway(tmp_path / "keys.db")), reload())
        await keeper.stop()

    monkeypatch.setattr(SqliteLedger, "totals", waits)
    asyncio.run(run())
    assert all(found)
