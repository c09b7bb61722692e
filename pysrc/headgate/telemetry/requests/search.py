"""Searching the request log.

The functions read a file, so they must be called in a thread. They raise sqlite3.Error; a query that takes too long
fails with the message `interrupted`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from typing import Any, Final

from headgate.telemetry.requests.database import open_to_read
from headgate.telemetry.requests.question import (
    Conditions,
    Span,
    conditions,
    cursor,
    flag,
    identifier,
    number,
    shown_time,
    time_range,
)

Json = dict[str, Any]
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
# A query that takes longer is interrupted.
SECONDS: Final = 15.0
_STEPS: Final = 10_000
PICOS: Final = 1e12

_COLUMNS: Final = (
    "id", "started_us", "completed_us", "trace_id", "span_id", "status", "error", "provider", "request_model",
    "response_model", "input_tokens", "output_tokens", "cost_picos", "prompt IS NOT NULL OR completion IS NOT NULL",
)  # fmt: skip
_SELECT: Final = ", ".join(_COLUMNS)
SEARCH_KEYS: Final = ("limit", "cursor", "timeRange", "filters", "includeAttributes")
TAIL_KEYS: Final = ("cursor", "filters", "includeAttributes")


@contextlib.contextmanager
def reading(path: str, seconds: float = SECONDS) -> Iterator[sqlite3.Connection]:
    """Open the database for one query, which is interrupted after `seconds`. Raises sqlite3.Error."""
    connection = open_to_read(path)
    try:
        deadline = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
        yield connection
    finally:
        connection.close()


def entry(row: tuple[Any, ...], attributes: str | None = None) -> Json:
    """Return a record in the form of the API. Unknown values are null; `attributes` is JSON text."""
    identity, started, completed, trace, span, status, error, provider, asked, answered, sent, got, cost, payload = row
    usage = {"inputTokens": sent, "outputTokens": got, "totalTokens": (sent or 0) + (got or 0)}
    counted = sent is not None or got is not None
    models = {"provider": provider, "requestModel": asked, "responseModel": answered}
    found: Json = {
        "id": str(identity),
        "startedAt": shown_time(started),
        "completedAt": shown_time(completed),
        "durationMs": (completed - started) / 1000,
        "traceId": trace,
        "spanId": span,
        "httpStatus": status,
        "error": error,
        "genAi": models if provider is not None else None,
        "usage": usage if counted else None,
        "cost": cost / PICOS if cost is not None else None,
        "hasPayload": bool(payload),
    }
    if attributes is not None:
        found["attributes"] = json.loads(attributes)
    return found


def place(row: tuple[Any, ...]) -> str:
    """Return the cursor that points to a record."""
    return f"{shown_time(row[2])}|{row[0]}"


def search(path: str, question: Json) -> Json:
    """Return `{logs, nextCursor}` for a query with SEARCH_KEYS, newest record first.

    `nextCursor` is null if there are no more records. Raises BadQuestion for an invalid query, sqlite3.Error.
    """
    limit = number(question.get("limit"), "limit", 1, MAX_LIMIT, DEFAULT_LIMIT)
    wanted = conditions(time_range(question.get("timeRange")), question.get("filters"))
    if question.get("cursor") is not None:
        wanted = wanted.also("(completed_us, id) < (?, ?)", *cursor(question["cursor"]))
    attributes = flag(question.get("includeAttributes"), "includeAttributes")
    found = _rows(path, wanted, "completed_us DESC, id DESC", limit + 1, attributes)
    more = len(found) > limit
    return {"logs": [one for _, one in found[:limit]], "nextCursor": found[limit - 1][0] if more else None}


def _rows(path: str, wanted: Conditions, order: str, limit: int, attributes: bool) -> list[tuple[str, Json]]:
    """Return pairs of a cursor and an entry."""
    more = ", attributes" if attributes else ", NULL"
    text = f"SELECT {_SELECT}{more} FROM requests WHERE {wanted.text} ORDER BY {order} LIMIT ?"  # noqa: S608 - no user input
    with reading(path) as connection:
        rows = connection.execute(text, (*wanted.values, limit)).fetchall()
    return [(place(row), entry(row[:-1], row[-1])) for row in rows]


def get(path: str, question: Json) -> Json | None:
    """Return the record with the id in the query, with attributes and payload, or None if there is none.

    Raises BadQuestion for an invalid id, sqlite3.Error.
    """
    identity = identifier(question.get("id"), "id")
    with reading(path) as connection:
        text = f"SELECT {_SELECT}, attributes, prompt, completion FROM requests WHERE id = ?"  # noqa: S608 - no user input
        row = connection.execute(text, (identity,)).fetchone()
    if row is None:
        return None
    found = entry(row[:-3], row[-3])
    if found["hasPayload"]:
        found["payload"] = {"requestPrompt": row[-2], "responseCompletion": row[-1]}
    return found


class Tail:
    """Follows the records after a cursor, or from now on if the query has none. Raises BadQuestion."""

    def __init__(self, path: str, question: Json) -> None:
        self._path = path
        self._wanted = conditions(Span(), question.get("filters"))
        self._attributes = flag(question.get("includeAttributes"), "includeAttributes")
        given = question.get("cursor")
        self._after: int | None = None if given is None else cursor(given)[1]

    def begin(self) -> None:
        """Start after the newest record if the query has no cursor. Raises sqlite3.Error."""
        if self._after is None:
            with reading(self._path) as connection:
                self._after = connection.execute("SELECT max(id) FROM requests").fetchone()[0] or 0

    def more(self) -> list[tuple[str, Json]]:
        """Return pairs of cursor and entry for the next new records, oldest first. Raises sqlite3.Error."""
        wanted = self._wanted.also("id > ?", self._after)
        found = _rows(self._path, wanted, "id", MAX_LIMIT, self._attributes)
        if found:
            self._after = int(found[-1][1]["id"])
        return found
