"""The request log in PostgreSQL, which several gateways may share.

The driver is asyncpg. Beside psycopg 3 it takes a quarter of the memory (5 and 23 MB when loaded), brings no second
OpenSSL into the process, and every call of it can be given up: a server that has stopped still accepts connections. A
batch of 500 records takes 0.8 ms of CPU time, and 0.95 ms with psycopg. Whoever calls here is a thread, so each session
has an event loop of its own.

No connection has a setting that outlives a transaction, so that a pool of connections in front of the server may stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import threading
import time
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import asyncpg

from headgate.document.secret import REDACTED, Secret
from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.postgres_schema import LOCK_ROWS, migrate
from headgate.telemetry.requests.records import COLUMNS, Row
from headgate.telemetry.requests.stores import (
    INTERRUPTED,
    SECONDS,
    TRIM_RECORDS,
    TRIM_TIMES,
    LogFailure,
    RefusedRecord,
    Unusable,
)

Found = TypeVar("Found")
# Together less than the gateway waits for the request log at its end.
CONNECT_SECONDS: Final = 3.0
WRITE_SECONDS: Final = 3.0
MIGRATE_SECONDS: Final = 60.0
END_SECONDS: Final = 0.5
# How long a client waits for the server's own time-out of a statement before it gives the connection up.
GRACE_SECONDS: Final = 0.5
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
_MARK: Final = re.compile(r"\?")

# Ids are given in the order in which transactions end: who follows the log by ids would miss records otherwise.
_BEGIN: Final = (
    f"BEGIN; SET LOCAL statement_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SET LOCAL idle_in_transaction_session_timeout = {int(WRITE_SECONDS * 1000)}; "
    f"SELECT pg_advisory_xact_lock({LOCK_ROWS})"
)
# Tells whether the batch is new. A connection that breaks in COMMIT leaves that in doubt.
_BATCH: Final = (
    "INSERT INTO headgate.writers AS known (writer, batch, at) VALUES ($1, $2, now()) ON CONFLICT (writer) "
    "DO UPDATE SET batch = excluded.batch, at = now() WHERE known.batch < excluded.batch RETURNING 1"
)
_COUNT: Final = "UPDATE headgate.totals SET records = records + {}, bytes = bytes + {}; COMMIT"
_OLDEST: Final = "SELECT id, bytes FROM headgate.requests ORDER BY id LIMIT $1"
_EXPIRED: Final = "SELECT id, bytes FROM headgate.requests WHERE completed_us < $3 ORDER BY completed_us LIMIT $1"
# Deletes the first records until $2 bytes are gone, at most $1 records.
_DELETE: Final = (
    "WITH old AS ({}), summed AS (SELECT id, bytes, sum(bytes) OVER (ORDER BY id) AS sum FROM old), "
    "gone AS (DELETE FROM headgate.requests WHERE id IN (SELECT id FROM summed WHERE sum - bytes < $2::bigint) "
    "RETURNING bytes), "
    "sums AS (SELECT count(*) AS records, coalesce(sum(bytes), 0) AS bytes FROM gone) "
    "UPDATE headgate.totals AS t SET records = t.records - sums.records, bytes = t.bytes - sums.bytes::bigint "
    "FROM sums RETURNING sums.records"
)
_ALL_BYTES: Final = 2**62
# The ledger of virtual keys asks for its writers later (headgate.telemetry.spend.rows.WRITER_DAYS).
_FORGET: Final = (
    "DELETE FROM headgate.writers WHERE at < now() - interval '1 day' "
    "AND (writer NOT LIKE 'spend/%' OR at < now() - interval '31 days')"
)


class PostgresSession:
    """A connection with the event loop that drives it. One thread at a time may use it."""

    def __init__(self, store: RequestLogStore) -> None:
        assert store.url is not None
        self._store = store
        self._loop = asyncio.SelectorEventLoop()
        # What a call fails with is raised by `run`. The rest is of connections that are given up.
        self._loop.set_exception_handler(lambda loop, context: None)
        self._connection: Any = None
        try:
            # Settings of the session would not pass a pool of connections in front of the server.
            opening = asyncpg.connect(store.url.reveal(), timeout=CONNECT_SECONDS, statement_cache_size=0)
            self._connection = self.run(opening, CONNECT_SECONDS + GRACE_SECONDS)
        except BaseException:
            self.close()
            raise

    def run(self, call: Awaitable[Found], seconds: float) -> Found:
        """Return what a call returns. Raises LogFailure if it fails, or takes longer than `seconds`.

        Raises RefusedRecord.
        """
        try:
            return self._loop.run_until_complete(asyncio.wait_for(call, seconds))
        except TimeoutError:
            raise LogFailure(f"no answer within {seconds:g} seconds") from None
        except asyncpg.QueryCanceledError:
            raise LogFailure(INTERRUPTED) from None
        except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError, OverflowError, TypeError) as error:
            raise RefusedRecord(self._plain(error)) from None
        except (*DRIVER_ERRORS, OSError, ValueError) as error:
            raise LogFailure(self._plain(error)) from None

    def _plain(self, error: Exception) -> str:
        assert self._store.url is not None
        return without_password(error, self._store.url)

    def execute(self, text: str, *values: Any, seconds: float = WRITE_SECONDS) -> None:
        """Run statements. Raises LogFailure."""
        self.run(self._connection.execute(text, *values), seconds + GRACE_SECONDS)

    def value(self, text: str, *values: Any, seconds: float = WRITE_SECONDS) -> Any:
        """Return the first value of the first row, None if there is no row. Raises LogFailure."""
        return self.run(self._connection.fetchval(text, *values), seconds + GRACE_SECONDS)

    def rows(self, text: str, values: Sequence[Any], seconds: float) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises LogFailure."""
        found = self.run(self._connection.fetch(text, *values), seconds + GRACE_SECONDS)
        return [tuple(row) for row in found]

    def copy(self, records: list[tuple[Any, ...]]) -> None:
        """Add records to the table, each with its size in bytes as the last value. Raises LogFailure."""
        copy = self._connection.copy_records_to_table
        columns = (*COLUMNS, "bytes")
        call = copy("requests", schema_name="headgate", records=records, columns=columns)
        self.run(call, WRITE_SECONDS + GRACE_SECONDS)

    def close(self, *, kindly: bool = False) -> None:
        """End the connection: with a word to the server if `kindly`, else at once."""
        if self._loop.is_closed():
            return
        if self._connection is not None:
            if kindly:
                with contextlib.suppress(LogFailure):
                    self.run(self._connection.close(), END_SECONDS)
            self._connection.terminate()
        self._loop.run_until_complete(_end_others())
        self._loop.close()


async def _end_others() -> None:
    """Cancel what still runs in this loop, and let it end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(asyncio.sleep(0), *others, return_exceptions=True)


class _Connections:
    """The connections to one server: at most `max_connections`, of which idle ones are used again by readers."""

    def __init__(self, store: RequestLogStore) -> None:
        self.store = store
        # The only one is shared: whoever has used it closes it.
        self.most = store.max_connections - store.reserved
        self.alone = self.most == 1
        self._turns = threading.BoundedSemaphore(self.most)
        self._used = 0
        self._idle: list[PostgresSession] = []
        self._lock = threading.Lock()

    def take(self, *, seconds: float, begin: str = "") -> PostgresSession:
        """Return a session of one's own, after the statements `begin`. Raises LogFailure."""
        if not self._turns.acquire(timeout=seconds):
            raise LogFailure(f"all {self.most} connections are in use")
        with self._lock:
            self._used += 1
            # Who begins with no statements opens a connection of its own, beside the idle ones.
            excess = self._idle.pop() if self._idle and not begin and self._used + len(self._idle) > self.most else None
        try:
            if excess is not None:
                excess.close(kindly=True)
            while begin and (found := self._reuse()) is not None:
                try:
                    found.execute(begin, seconds=CONNECT_SECONDS)
                except LogFailure:      # the server was started anew, say
                    found.close()
                else:
                    return found
            found = PostgresSession(self.store)
            if begin:
                try:
                    found.execute(begin, seconds=CONNECT_SECONDS)
                except BaseException:
                    found.close()
                    raise
            return found
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        with self._lock:
            self._used -= 1
        self._turns.release()

    def _reuse(self) -> PostgresSession | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, session: PostgresSession, *, good: bool) -> None:
        """End the use of a session. A `good` one is kept for the next reader."""
        if good and not self.alone:
            with self._lock:
                self._idle.append(session)
        else:
            session.close(kindly=good)
        self._release()

    def close_idle(self) -> None:
        """Close the sessions that nobody uses."""
        while (found := self._reuse()) is not None:
            found.close(kindly=True)


_open: Final[dict[RequestLogStore, _Connections]] = {}
_guard: Final = threading.Lock()


def _connections(store: RequestLogStore) -> _Connections:
    """Return the connections to the server of a configuration; those of the configuration before are closed."""
    with _guard:
        found = _open.get(store)
        if found is None:
            for old in _open.values():
                old.close_idle()
            _open.clear()
            found = _open[store] = _Connections(store)
        return found


@contextlib.contextmanager
def lent_session(store: RequestLogStore) -> Iterator[PostgresSession]:
    """Yield a session that counts among the connections of the request log, and is closed afterwards. Raises
    LogFailure.
    """
    connections = _connections(store)
    session = connections.take(seconds=WRITE_SECONDS)
    good = False
    try:
        yield session
        good = True
    finally:
        session.close(kindly=good)
        connections.give_back(session, good=False)


@contextlib.contextmanager
def pooled_session(store: RequestLogStore, begin: str) -> Iterator[PostgresSession]:
    """Yield a session of the request log's connections after the statements `begin`; the next one may use it again.

    Raises LogFailure.
    """
    connections = _connections(store)
    session = connections.take(seconds=WRITE_SECONDS, begin=begin)
    good = False
    try:
        yield session
        good = True
    finally:
        connections.give_back(session, good=good)


def without_password(error: Exception, url: Secret) -> str:
    """Return the text of an error without the password of a URL."""
    text = str(error) or type(error).__name__
    for secret in passwords(url.reveal()):
        text = text.replace(secret, REDACTED)
    return text


def passwords(url: str) -> list[str]:
    """Return what must not be shown of a URL: its password, as it is written and as it is meant."""
    parts = urlsplit(url)
    found = re.search(r":([^@]*)@", parts.netloc)
    texts = [found[1]] if found else []
    texts += re.findall(r"(?:^|&)(?:ssl)?password=([^&]*)", parts.query)
    return [one for text in texts for one in dict.fromkeys((text, unquote(text))) if one]


class PostgresLog:
    """The database, opened for writing. Only one thread may use it. All methods raise LogFailure."""

    def __init__(self, store: RequestLogStore, writer: str) -> None:
        self._store = store
        self._writer = writer
        self._connections = _connections(store)
        self._session: PostgresSession | None = None
        with self._using() as session:
            migrate(lambda text, *values: session.value(text, *values, seconds=MIGRATE_SECONDS), Unusable)

    @contextlib.contextmanager
    def _using(self) -> Iterator[PostgresSession]:
        """Yield the session; it is closed if something fails, for nobody knows then in what state it is."""
        if self._session is None:
            self._session = self._connections.take(seconds=WRITE_SECONDS)
        session = self._session
        try:
            yield session
        except BaseException:
            self._give_back(good=False)
            raise
        if self._connections.alone:
            self._give_back(good=True)

    def _give_back(self, *, good: bool) -> None:
        session, self._session = self._session, None
        if session is not None:
            if good:
                session.close(kindly=True)
            self._connections.give_back(session, good=False)

    def add(self, rows: Sequence[Row], batch: int) -> None:
        """Write all rows, or none of them. A `batch` of this writer that was written already is not written again."""
        sizes = [sum(len(one.encode()) for one in row if isinstance(one, str)) for row in rows]
        with self._using() as session:
            session.execute(_BEGIN)
            if session.value(_BATCH, self._writer, batch) is None:
                session.execute("ROLLBACK")
                return
            session.copy([(*row, size) for row, size in zip(rows, sizes, strict=True)])
            session.execute(_COUNT.format(len(rows), sum(sizes)))

    def trim(self) -> int:
        """Delete the oldest records if there are too many. Return the number of deleted records."""
        gone = 0
        with self._using() as session:
            for _ in range(TRIM_TIMES):
                found = self._trim_some(session)
                gone += found
                if not found:
                    break
            session.execute(_FORGET)
        return gone

    def _trim_some(self, session: PostgresSession) -> int:
        store = self._store
        if store.max_age_ms is not None:
            before = time.time_ns() // 1000 - store.max_age_ms * 1000
            gone = session.value(_DELETE.format(_EXPIRED), TRIM_RECORDS, _ALL_BYTES, before)
            if gone:
                return int(gone)
        [(records, size)] = session.rows("SELECT records, bytes FROM headgate.totals", (), WRITE_SECONDS)
        most, excess = records - store.max_records, size - store.max_bytes
        if most > 0:
            return int(session.value(_DELETE.format(_OLDEST), min(most, TRIM_RECORDS), _ALL_BYTES) or 0)
        if excess > 0:
            return int(session.value(_DELETE.format(_OLDEST), TRIM_RECORDS, excess) or 0)
        return 0

    def close(self) -> None:
        """Close the connection."""
        self._give_back(good=True)


class _PostgresReader:
    def __init__(self, session: PostgresSession, deadline: float) -> None:
        self._session = session
        self._deadline = deadline

    def rows(self, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LogFailure(INTERRUPTED)
        numbers = itertools.count(1)
        return self._session.rows(_MARK.sub(lambda _: f"${next(numbers)}", text), values, left)


@contextlib.contextmanager
def reading(store: RequestLogStore, seconds: float = SECONDS) -> Iterator[_PostgresReader]:
    """Open the database for one question, whose queries see one state. It is interrupted after `seconds`.

    Raises LogFailure.
    """
    deadline = time.monotonic() + seconds
    connections = _connections(store)
    begin = (
        "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; "
        f"SET LOCAL statement_timeout = {max(1, int(seconds * 1000))}"
    )
    session = connections.take(seconds=seconds, begin=begin)
    try:
        yield _PostgresReader(session, deadline)
        session.execute("COMMIT")
    except BaseException:
        connections.give_back(session, good=False)
        raise
    connections.give_back(session, good=True)
