"""What the databases of the request log have in common, and the choice between them.

Each engine has a module of its own (`sqlite`, `postgres`) and is imported when a configuration asks for it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.records import Row

# A query that takes longer is interrupted.
SECONDS: Final = 15.0
# The text of the failure of a query that was interrupted.
INTERRUPTED: Final = "interrupted"
# Records per deletion, and deletions in a row. Both are bounded, so that readers and writers do not wait long.
TRIM_RECORDS: Final = 2_000
TRIM_TIMES: Final = 8


class LogFailure(Exception):
    """The database cannot be used. The argument is the reason, without any credential."""


class Unusable(LogFailure):
    """What is there cannot be used as the database of the request log."""


class RefusedRecord(LogFailure):
    """The database works, and does not take one of the records."""


class LogWriter(Protocol):
    """A database that is open for writing. Only one thread may use it. All methods raise LogFailure."""

    def add(self, rows: Sequence[Row], batch: int) -> None:
        """Write all rows, or none of them. A `batch` that was written already is not written again."""

    def trim(self) -> int:
        """Delete the oldest records if there are too many. Return the number of deleted records."""

    def close(self) -> None:
        """Close the database."""


class LogReader(Protocol):
    """A database that is open for one question."""

    def rows(self, text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rows of a query whose parameters are written `?`. Raises LogFailure."""


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """How an engine writes what SQL has no common words for.

    `total` is the sum of `{}` as a floating-point number. `attribute` is the value of an attribute, and
    `equal_attribute` the condition that it has a text; each takes the name as a parameter, then the text.
    """

    table: str
    total: str
    attribute: str
    equal_attribute: str
    json_values: bool = False

    def value(self, found: Any) -> Any:
        """Return the value of an attribute as SQLite tells it: 0 or 1 for bools, JSON text for lists and objects."""
        if not self.json_values or found is None:
            return found
        value = json.loads(found)
        if isinstance(value, bool):
            return int(value)
        return found if isinstance(value, list | dict) else value


SQLITE: Final = SqlDialect(
    "requests", "total({})", "(SELECT value FROM json_each(attributes) WHERE key = ?)",
    "EXISTS (SELECT 1 FROM json_each(attributes) WHERE key = ? AND CAST(value AS TEXT) = ?)",
)  # fmt: skip
POSTGRES: Final = SqlDialect(
    "headgate.requests", "coalesce(sum({}), 0)::float8", "nullif(attributes -> ?::text, 'null'::jsonb)",
    "(SELECT CASE jsonb_typeof(v) WHEN 'boolean' THEN (v::bool::int)::text ELSE v #>> '{}' END "
    "FROM (SELECT attributes -> ?::text AS v) AS one) = ?::text",
    json_values=True,
)  # fmt: skip


def dialect(store: RequestLogStore) -> SqlDialect:
    """Return how the engine of a database writes SQL."""
    return SQLITE if store.url is None else POSTGRES


def open_to_write(store: RequestLogStore, writer: str) -> LogWriter:
    """Open a database for writing; `writer` names the process among those that write. Raises LogFailure."""
    if store.url is None:
        from headgate.telemetry.requests.sqlite import SqliteLog

        return SqliteLog(store)
    from headgate.telemetry.requests.postgres import PostgresLog

    return PostgresLog(store, writer)


@contextlib.contextmanager
def reading(store: RequestLogStore, seconds: float = SECONDS) -> Iterator[LogReader]:
    """Open the database for one question, which is interrupted after `seconds`. Raises LogFailure."""
    if store.url is None:
        from headgate.telemetry.requests import sqlite

        with sqlite.reading(store.path, seconds) as found:
            yield found
    else:
        from headgate.telemetry.requests import postgres

        with postgres.reading(store, seconds) as reader:
            yield reader
