"""The ledger in a real PostgreSQL server: sums of any size, also in tables of the version before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_rig import Server, postgres
from tests.headgate.telemetry.spend.large_sums_rig import LARGE, check_large_sums

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.spend.postgres import PostgresLedger
from headgate.telemetry.spend.rows import SpendRow


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


def test_sums_of_any_size_are_exact(server: Server) -> None:
    ledger = PostgresLedger(RequestLogStore(url=Secret(server.url(server.database())), shown="server"))
    check_large_sums(ledger, [f"2028-02-{day:02d}" for day in range(1, 29)])
    # A row has room for more than a bigint as well, and a batch counts once.
    for batch in (2, 3, 3):
        ledger.add([SpendRow("2028-03-01", "b", "", "m", 1, 1, 1, 1, 2 * LARGE)], batch, "2020-01-01")
    assert ledger.read("2028-03-01", "2028-03-01", ("key",)) == [("b", 2, 2, 2, 2, 4 * LARGE)]
