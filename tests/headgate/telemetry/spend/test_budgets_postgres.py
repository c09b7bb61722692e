"""Leases from a real PostgreSQL server: atomic, with floors, forced and given back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
from postgres_rig import Server, postgres
from tests.headgate.telemetry.spend import budget_store_rig as rig

from headgate.document.secret import Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests import postgres as connections
from headgate.telemetry.spend.budgets import BudgetFailure, LeaseQuestion, Standing
from headgate.telemetry.spend.budgets_postgres import PostgresBudgets


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with postgres() as found:
        yield found


@pytest.fixture
def store(server: Server) -> Iterator[RequestLogStore]:
    found = RequestLogStore(url=Secret(server.url(server.database())), shown="server")
    yield found
    connections._connections(found).close_idle()


def test_leases(store: RequestLogStore) -> None:
    budgets = PostgresBudgets(store)
    for check in (rig.check_grants, rig.check_floor, rig.check_windows, rig.check_large, rig.check_many):
        check(budgets)
    assert rig.heard(budgets) is Standing.KNOWN


def test_what_a_silent_gateway_had_lent_is_taken_back(store: RequestLogStore, server: Server) -> None:
    def silence() -> None:
        assert store.url is not None
        database = store.url.reveal().rpartition("/")[2]
        server.query("UPDATE headgate.lease_holders SET heard = heard - interval '11 seconds'", database)

    rig.check_expiry(PostgresBudgets(store), PostgresBudgets(store), silence)


def test_several_gateways_at_once(store: RequestLogStore) -> None:
    rig.check_at_once([PostgresBudgets(store) for _ in range(4)])


def test_windows_that_ended_long_ago_are_forgotten(store: RequestLogStore, server: Server) -> None:
    now = int(time.time())
    asker = rig.asker(PostgresBudgets(store), rig.budget("old", start_s=now - 10 * 86400))
    asker(least=1, total=1, lent=1)
    rig.asker(PostgresBudgets(store), rig.budget("new"))(least=1, total=1, lent=1)
    assert store.url is not None
    database = store.url.reveal().rpartition("/")[2]
    assert server.query("SELECT name, taken FROM headgate.budgets", database) == [["new", "1"]]
    # Nor is what was lent in them kept.
    assert server.query("SELECT name, lent FROM headgate.lent", database) == [["new", "1"]]


def test_a_server_that_is_away_is_told_without_its_password(server: Server) -> None:
    with postgres() as other:
        url = other.url(other.database())
    budgets = PostgresBudgets(RequestLogStore(url=Secret(url), shown="server"))
    with pytest.raises(BudgetFailure) as found:
        asyncio.run(budgets.ask([LeaseQuestion(rig.budget())]))
    assert "w%C3%B6rd" not in str(found.value)
    assert "wörd" not in str(found.value)
