"""The ledger in a real PostgreSQL server: sums of any size, also in tables of the version before."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from postgres_rig import Server, postgres
from tests.headgate.telemetry.spend.large_sums_rig import LARGE, check_large_sums

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres import PostgresSession
from headgate.telemetry.requests.stores import LogFailure
from headgate.telemetry.spend.postgres import PostgresLedger
from headgate.telemetry.spend.rows import Batch, SpendRow, Warned


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


class EndingLedger(PostgresLedger):
    """Its connection ends when old claims are forgotten."""

    @contextlib.contextmanager
    def _session(self) -> Iterator[PostgresSession]:
        with super()._session() as session:

            def ends(*_: object) -> None:
                raise LogFailure("the connection ended")

            session.execute = ends  # type: ignore[method-assign]
            yield session


def test_sums_of_any_size_are_exact(server: Server) -> None:
    ledger = PostgresLedger(RequestLogStore(url=Secret(server.url(server.database())), shown="server"))
    check_large_sums(ledger, [f"2028-02-{day:02d}" for day in range(1, 29)])
    # A row has room for more than a bigint as well, and a batch counts once.
    for batch in (2, 3, 3):
        ledger.add([SpendRow("2028-03-01", "b", "", "m", 1, 1, 1, 1, 2 * LARGE)], Batch("w", batch), "2020-01-01")
    assert ledger.read("2028-03-01", "2028-03-01", ("key",)) == [("b", 2, 2, 2, 2, 4 * LARGE)]


def test_what_is_claimed_is_told_though_the_connection_ends_then(server: Server) -> None:
    store = RequestLogStore(url=Secret(server.url(server.database())), shown="server")
    warned = Warned("key", "a", "day", "tokens", 0, 2**40)
    once = EndingLedger(store)
    with pytest.raises(LogFailure):
        once.claim([warned])
    assert PostgresLedger(store).claim([warned]) == [warned]
    assert PostgresLedger(store).claim([warned]) == []


def test_the_ledger_keeps_its_connection(server: Server) -> None:
    """It is asked once a second."""
    database = server.database()
    ledger = PostgresLedger(RequestLogStore(url=Secret(server.url(database)), shown="server"))
    here = f"SELECT pid FROM pg_stat_activity WHERE datname = '{database}'"
    row = SpendRow("2028-03-01", "b", "", "m", 1, 1, 1, 1, 2)
    found = []
    for batch in (1, 2):
        ledger.add([row], Batch("w", batch), "2020-01-01")
        found.append(server.query(here))
        assert [one.requests for one in ledger.totals("2028-03-01", "2028-03-01")] == [batch]
        found.append(server.query(here))
    assert len(found[0]) == 1
    assert found == [found[0]] * 4
