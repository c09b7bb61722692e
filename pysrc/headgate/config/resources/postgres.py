"""Stored resources in PostgreSQL, which several gateways share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Final

import asyncpg

from headgate.config.resources.sqlite import COLUMNS, resource
from headgate.config.resources.stored import StorageFailure, StoredSnapshot, VersionMoved, Written
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres import (
    CONNECT_SECONDS,
    DRIVER_ERRORS,
    GRACE_SECONDS,
    MIGRATE_SECONDS,
    WRITE_SECONDS,
    PostgresSession,
    lent_session,
    without_password,
)
from headgate.telemetry.requests.postgres_schema import VERSION, migrate
from headgate.telemetry.requests.stores import LogFailure

CHANNEL: Final = "headgate_resources"
EXISTS: Final = "SELECT to_regclass('headgate.resource_version') IS NOT NULL"
VERSION_NOW: Final = "SELECT version FROM headgate.resource_version"
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(WRITE_SECONDS * 1000)}"
)
_READ: Final = (
    f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}"
)
# One statement for all rows: a change of 1,000 resources is one round trip.
_PUT: Final = (
    f"INSERT INTO headgate.resources ({COLUMNS}) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], "  # noqa: S608
    "$4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[]) ON CONFLICT (kind, id) DO UPDATE SET "
    "value = excluded.value, revision = excluded.revision, place = excluded.place, updated_us = excluded.updated_us"
)
_DELETE: Final = "DELETE FROM headgate.resources WHERE (kind, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))"


@contextlib.contextmanager
def _session(store: RequestLogStore) -> Iterator[PostgresSession]:
    try:
        with lent_session(store) as session:
            yield session
    except LogFailure as error:
        raise StorageFailure(str(error)) from None


def read(store: RequestLogStore) -> StoredSnapshot:
    """Return what is stored; an empty snapshot if there are no tables yet. Raises StorageFailure."""
    with _session(store) as session:
        session.execute(_READ)
        if session.value("SELECT to_regclass('headgate.version') IS NOT NULL"):
            made = session.value("SELECT max(version) FROM headgate.version") or 0
            if made > VERSION:
                raise StorageFailure(f"its tables have version {made}, but this gateway only supports {VERSION}")
        version = session.value(VERSION_NOW) if session.value(EXISTS) else None
        # Tables are found as soon as another gateway has made them, and their rows not by a transaction from before.
        if version is None:
            return StoredSnapshot()
        query = f"SELECT {COLUMNS} FROM headgate.resources ORDER BY place"  # noqa: S608
        rows: list[Any] = session.rows(query, (), WRITE_SECONDS)
        session.execute("COMMIT")
        return StoredSnapshot(version, tuple(resource(row) for row in rows))


def write(store: RequestLogStore, written: Written) -> None:
    """Store a change in one transaction, and tell the other gateways. Raises VersionMoved and StorageFailure."""
    with _session(store) as session:
        if not session.value(EXISTS):
            migrate(lambda text, *values: session.value(text, *values, seconds=MIGRATE_SECONDS), LogFailure)
        session.execute(_BEGIN)
        if session.value(f"{VERSION_NOW} FOR UPDATE") != written.after.version - 1:
            raise VersionMoved
        if written.puts:
            rows = (
                (one.kind, one.id, one.text, one.revision, one.place, one.created_us, one.updated_us)
                for one in written.puts
            )
            session.execute(_PUT, *(list(column) for column in zip(*rows, strict=True)))
        if written.deleted:
            session.execute(_DELETE, *(list(column) for column in zip(*written.deleted, strict=True)))
        session.execute("UPDATE headgate.resource_version SET version = $1", written.after.version)
        session.execute(f"NOTIFY {CHANNEL}")
        session.execute("COMMIT")


@contextlib.asynccontextmanager
async def listening(store: RequestLogStore) -> AsyncIterator[tuple[Callable[[], Awaitable[int]], asyncio.Event]]:
    """Yield a function that returns the version of what is stored, and an event that is set when that may have changed.

    The connection is one of its own, of the running loop. Raises StorageFailure, as the function does.
    """
    assert store.url is not None
    told = asyncio.Event()
    connection: Any = None

    async def version() -> int:
        exists = await _within(store, connection.fetchval(EXISTS))
        return int(await _within(store, connection.fetchval(VERSION_NOW)) or 0) if exists else 0

    try:
        opening = asyncpg.connect(store.url.reveal(), timeout=CONNECT_SECONDS, statement_cache_size=0)
        connection = await _within(store, opening)
        connection.add_termination_listener(lambda _connection: told.set())
        await _within(store, connection.add_listener(CHANNEL, lambda *_: told.set()))
        yield version, told
    finally:
        if connection is not None:
            connection.terminate()


async def _within(store: RequestLogStore, call: Awaitable[Any]) -> Any:
    assert store.url is not None
    seconds = CONNECT_SECONDS + GRACE_SECONDS
    try:
        return await asyncio.wait_for(call, seconds)
    except TimeoutError:
        raise StorageFailure(f"no answer within {seconds:g} seconds") from None
    except (*DRIVER_ERRORS, OSError, ValueError) as error:
        raise StorageFailure(without_password(error, store.url)) from None
