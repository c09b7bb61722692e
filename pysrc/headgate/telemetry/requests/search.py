"""Searching the request log.

The functions wait for the database, so they must be called in a thread. They raise LogFailure; a query that takes too
long fails with the message `interrupted`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from headgate.ir.request_log import RequestLogStore
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
from headgate.telemetry.requests.stores import dialect, reading

Json = dict[str, Any]
DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 500
PICOS: Final = 1e12

_COLUMNS: Final = (
    "id", "started_us", "completed_us", "trace_id", "span_id", "status", "error", "provider", "request_model",
    "response_model", "input_tokens", "output_tokens", "cost_picos", "prompt IS NOT NULL OR completion IS NOT NULL",
)  # fmt: skip
_SELECT: Final = ", ".join(_COLUMNS)
SEARCH_KEYS: Final = ("limit", "cursor", "timeRange", "filters", "includeAttributes")
TAIL_KEYS: Final = ("cursor", "filters", "includeAttributes")


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


def search(store: RequestLogStore, question: Json) -> Json:
    """Return `{logs, nextCursor}` for a query with SEARCH_KEYS, newest record first.

    `nextCursor` is null if there are no more records. Raises BadQuestion for an invalid query, LogFailure.
    """
    limit = number(question.get("limit"), "limit", 1, MAX_LIMIT, DEFAULT_LIMIT)
    wanted = conditions(time_range(question.get("timeRange")), question.get("filters"), dialect(store))
    if question.get("cursor") is not None:
        wanted = wanted.also("(completed_us, id) < (?, ?)", *cursor(question["cursor"]))
    attributes = flag(question.get("includeAttributes"), "includeAttributes")
    found = _rows(store, wanted, "completed_us DESC, id DESC", limit + 1, attributes)
    more = len(found) > limit
    return {"logs": [one for _, one in found[:limit]], "nextCursor": found[limit - 1][0] if more else None}


def _rows(
    store: RequestLogStore, wanted: Conditions, order: str, limit: int, attributes: bool
) -> list[tuple[str, Json]]:
    """Return pairs of a cursor and an entry."""
    more = ", attributes" if attributes else ", NULL"
    text = f"SELECT {_SELECT}{more} FROM {dialect(store).table} WHERE {wanted.text} ORDER BY {order} LIMIT ?"  # noqa: S608 - no user input
    with reading(store) as reader:
        rows = reader.rows(text, (*wanted.values, limit))
    return [(place(row), entry(row[:-1], row[-1])) for row in rows]


def get(store: RequestLogStore, question: Json) -> Json | None:
    """Return the record with the id in the query, with attributes and payload, or None if there is none.

    Raises BadQuestion for an invalid id, LogFailure.
    """
    identity = identifier(question.get("id"), "id")
    with reading(store) as reader:
        text = f"SELECT {_SELECT}, attributes, prompt, completion FROM {dialect(store).table} WHERE id = ?"  # noqa: S608 - no user input
        rows = reader.rows(text, (identity,))
    if not rows:
        return None
    [row] = rows
    found = entry(row[:-3], row[-3])
    if found["hasPayload"]:
        found["payload"] = {"requestPrompt": row[-2], "responseCompletion": row[-1]}
    return found


class Tail:
    """Follows the records after a cursor, or from now on if the query has none. Raises BadQuestion."""

    def __init__(self, store: RequestLogStore, question: Json) -> None:
        self._store = store
        self._wanted = conditions(Span(), question.get("filters"), dialect(store))
        self._attributes = flag(question.get("includeAttributes"), "includeAttributes")
        given = question.get("cursor")
        self._after: int | None = None if given is None else cursor(given)[1]

    def begin(self) -> None:
        """Start after the newest record if the query has no cursor. Raises LogFailure."""
        if self._after is None:
            with reading(self._store) as reader:
                [(newest,)] = reader.rows(f"SELECT max(id) FROM {dialect(self._store).table}", ())  # noqa: S608 - no user input
            self._after = newest or 0

    def more(self) -> list[tuple[str, Json]]:
        """Return pairs of cursor and entry for the next new records, oldest first. Raises LogFailure."""
        wanted = self._wanted.also("id > ?", self._after)
        found = _rows(self._store, wanted, "id", MAX_LIMIT, self._attributes)
        if found:
            self._after = int(found[-1][1]["id"])
        return found
