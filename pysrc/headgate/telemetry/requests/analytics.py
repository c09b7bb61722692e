"""Sums of requests, tokens and cost over time, in groups that the query selects."""

from __future__ import annotations

import math
import time
from typing import Any, Final

from headgate.ir.request_log import RequestLogStore
from headgate.telemetry.requests.question import (
    LISTS,
    MAX_TEXT,
    BadQuestion,
    Conditions,
    Span,
    conditions,
    number,
    shown_time,
    time_range,
)
from headgate.telemetry.requests.search import PICOS, Json
from headgate.telemetry.requests.stores import SqlDialect, dialect, reading

KEYS: Final = ("timeRange", "filters", "groupBy", "bucketCount", "bucketSeconds")
DAY_US: Final = 86_400_000_000
SECOND_US: Final = 1_000_000
DEFAULT_BUCKETS: Final = 96
MAX_BUCKETS: Final = 500
MAX_SECONDS: Final = 366 * 86_400
MAX_DIMENSIONS: Final = 3
# Only the groups with the most requests are listed. All others count in the sums of the buckets only.
MAX_GROUPS: Final = 50
MAX_OPTIONS: Final = 2_000
ATTRIBUTE: Final = "attributes."

def _sums_in(words: SqlDialect) -> str:
    """Return the columns of the sums of a group: requests, tokens, cost, errors, microseconds."""
    tokens = words.total.format("coalesce(input_tokens, 0) + coalesce(output_tokens, 0)")
    cost = words.total.format("cost_picos")
    taken = words.total.format("completed_us - started_us")
    return f"count(*), {tokens}, {cost}, count(*) FILTER (WHERE status >= 400 OR status = 0), {taken}"


def summary(store: RequestLogStore, question: Json) -> Json:
    """Return `{timeRange, bucketSeconds, buckets, groups, filterOptions}` for a query with KEYS.

    Raises BadQuestion for an invalid query, LogFailure if the database cannot be read.
    """
    words = dialect(store)
    span, seconds, count = _buckets(question)
    names, texts, values = _dimensions(question.get("groupBy"), words)
    wanted = conditions(span, question.get("filters"), words)
    with reading(store) as reader:
        run = reader.rows
        over_time = run(
            f"SELECT (completed_us - ?) / ?, {_sums_in(words)} FROM {words.table} WHERE {wanted.text} GROUP BY 1",  # noqa: S608 - no user input
            (span.start, seconds * SECOND_US, *wanted.values),
        )
        groups: list[tuple[Any, ...]] = []
        parts: list[tuple[Any, ...]] = []
        if names:
            groups = run(_grouped(texts, wanted, "", words), (*values, *wanted.values))
            grouped = _grouped(texts, wanted, ", (completed_us - ?) / ?", words)
            parts = run(grouped, (*values, span.start, seconds * SECOND_US, *wanted.values))
        options = run(
            f"SELECT DISTINCT {', '.join(LISTS.values())} FROM {words.table} "  # noqa: S608 - no user input
            "WHERE completed_us >= ? AND completed_us < ? LIMIT ?",
            (span.start, span.end, MAX_OPTIONS),
        )
    groups, parts = ([_readable(row, names, words) for row in rows] for rows in (groups, parts))
    assert span.start is not None
    assert span.end is not None
    shown = [dict(zip(names, row[: len(names)], strict=True)) for row in groups[:MAX_GROUPS]]
    buckets = [_bucket(span.start + at * seconds * SECOND_US, seconds) for at in range(count)]
    for at, *sums in over_time:
        buckets[at] |= _sums(sums)
    for row in parts:
        key = dict(zip(names, row[: len(names)], strict=True))
        if key in shown:
            buckets[row[len(names)]].setdefault("groups", []).append({"key": key, **_sums(row[len(names) + 1 :])})
    return {
        "timeRange": {"from": shown_time(span.start), "to": shown_time(span.end)},
        "bucketSeconds": seconds,
        "buckets": buckets,
        "groups": [{"key": key, **_sums(row[len(names) :])} for key, row in zip(shown, groups, strict=False)],
        "filterOptions": {
            name: sorted({row[at] for row in options if row[at] is not None}) for at, name in enumerate(LISTS)
        },
    }


def _bucket(start: int, seconds: int) -> Json:
    return {"start": shown_time(start), "end": shown_time(start + seconds * SECOND_US), **_sums((0, 0, 0, 0, 0))}


def _sums(row: Any) -> Json:
    requests, tokens, picos, errors, taken = row
    sums = {"requests": requests, "errors": int(errors), "totalTokens": int(tokens), "cost": picos / PICOS}
    return {**sums, "meanMs": round(taken / requests / 1000, 3) if requests else None}


def _readable(row: tuple[Any, ...], names: list[str], words: SqlDialect) -> tuple[Any, ...]:
    """Return a row of a group with the values of its attributes as JSON has them."""
    keys = (words.value(one) if name.startswith(ATTRIBUTE) else one for name, one in zip(names, row, strict=False))
    return (*keys, *row[len(names) :])


def _grouped(texts: list[str], wanted: Conditions, bucket: str, words: SqlDialect) -> str:
    keys = [str(at + 1) for at in range(len(texts) + bool(bucket))]
    order = ", ".join(f"{key} NULLS FIRST" for key in keys)
    limit = "" if bucket else f" ORDER BY count(*) DESC, {order} LIMIT {MAX_GROUPS}"
    columns = f"{', '.join(texts)}{bucket}, {_sums_in(words)}"
    return f"SELECT {columns} FROM {words.table} WHERE {wanted.text} GROUP BY {', '.join(keys)}{limit}"  # noqa: S608 - no user input


def _buckets(question: Json) -> tuple[Span, int, int]:
    """Return the time span, the length of a bucket in seconds, and the number of buckets."""
    asked = time_range(question.get("timeRange"))
    end = asked.end if asked.end is not None else max(time.time_ns() // 1000 + 1, (asked.start or 0) + SECOND_US)
    start = asked.start if asked.start is not None else max(end - DAY_US, 0)
    end = max(end, start + 1)
    seconds = question.get("bucketSeconds")
    if seconds is not None and question.get("bucketCount") is not None:
        raise BadQuestion("bucketSeconds: not together with bucketCount")
    length = (end - start) / SECOND_US
    if seconds is None:
        wanted = number(question.get("bucketCount"), "bucketCount", 1, MAX_BUCKETS, DEFAULT_BUCKETS)
        seconds = max(1, math.ceil(length / wanted))
    else:
        seconds = number(seconds, "bucketSeconds", 1, MAX_SECONDS, 1)
    count = max(1, math.ceil(length / seconds))
    if count > MAX_BUCKETS:
        raise BadQuestion(f"bucketSeconds: that makes {count} buckets, but {MAX_BUCKETS} is the maximum")
    return Span(start, end), seconds, count


def _dimensions(found: Any, words: SqlDialect) -> tuple[list[str], list[str], list[Any]]:
    """Return the names in `groupBy`, their SQL expressions, and the parameters of these."""
    names = [] if found is None else found
    if not isinstance(names, list) or len(names) > MAX_DIMENSIONS or len(set(map(str, names))) != len(names):
        raise BadQuestion(f"groupBy: expected a list of at most {MAX_DIMENSIONS} different names")
    texts, values = [], []
    for name in names:
        if isinstance(name, str) and name in LISTS:
            texts.append(LISTS[name])
        elif isinstance(name, str) and name > ATTRIBUTE and name.startswith(ATTRIBUTE) and len(name) <= MAX_TEXT:
            texts.append(words.attribute)
            values.append(name.removeprefix(ATTRIBUTE))
        else:
            raise BadQuestion(f"groupBy: one of {', '.join(LISTS)}, {ATTRIBUTE}<name>")
    return names, texts, values
