"""Queries of the request log: JSON documents are converted to SQL conditions. Unknown keys are refused everywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from headgate.telemetry.requests.stores import SqlDialect

MAX_CHOICES: Final = 100
MAX_TEXT: Final = 1024
# The largest integer of SQLite and of PostgreSQL's bigint.
MAX_ID: Final = 2**63 - 1
# The year 2100. Earlier times than 1970 and later ones than this are clipped, because no record has them.
LATEST_US: Final = 4_102_444_800_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

# The columns of the filters that are lists.
LISTS: Final = {
    "httpStatus": "status", "provider": "provider", "requestModel": "request_model", "responseModel": "response_model",
}  # fmt: skip
FILTERS: Final = (*LISTS, "traceId", "hasPayload", "attributes")
_CLASS: Final = re.compile(r"[1-5]xx")
_TRACE: Final = re.compile(r"[0-9A-Fa-f]{1,64}")


class BadQuestion(ValueError):
    """The query is not valid. The argument is the reason."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """A condition in SQL for WHERE, with its parameters."""

    text: str
    values: tuple[Any, ...]

    def also(self, text: str, *values: Any) -> Conditions:
        """Return the conjunction of these conditions and another one."""
        return Conditions(f"{self.text} AND {text}", (*self.values, *values))


@dataclass(frozen=True, slots=True)
class Span:
    """A span of completion times in microseconds since 1970: `start` inclusive, `end` exclusive, None is open."""

    start: int | None = None
    end: int | None = None


def document(body: bytes, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the JSON object of a request body; an empty body is an empty object.

    Raises BadQuestion if the body is not a JSON object, or has a key that is not in `known`.
    """
    try:
        found = json.loads(body) if body.strip() else {}
        # JSON allows unpaired surrogates, which cannot be encoded in UTF-8.
        shown = json.dumps(found, ensure_ascii=False)
        shown.encode()
    except (ValueError, RecursionError):
        raise BadQuestion("the body is not JSON") from None
    if "\\u0000" in shown.replace("\\\\", ""):
        raise BadQuestion("the NUL character is not allowed")
    return closed(found, known, "")


def closed(found: Any, known: tuple[str, ...], path: str) -> dict[str, Any]:
    """Return a map after checking that all keys are known; None gives an empty map. Raises BadQuestion."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadQuestion(f"{path or 'the body'}: expected an object")
    for key in found:
        if key not in known:
            raise BadQuestion(f"{path + '.' if path else ''}{key}: unknown field; fields are {', '.join(known)}")
    return found


def number(found: Any, path: str, least: int, most: int, default: int) -> int:
    """Return an integer in `least`..`most`; None gives the default. Raises BadQuestion."""
    if found is None:
        return default
    if type(found) is not int or not least <= found <= most:
        raise BadQuestion(f"{path}: expected a whole number in {least}..{most}")
    return found


def flag(found: Any, path: str) -> bool:
    """Return a bool; None gives False. Raises BadQuestion."""
    if found is not None and not isinstance(found, bool):
        raise BadQuestion(f"{path}: expected true or false")
    return bool(found)


def text(found: Any, path: str) -> str:
    """Return a non-empty text of at most MAX_TEXT characters. Raises BadQuestion."""
    if not isinstance(found, str) or not found or len(found) > MAX_TEXT:
        raise BadQuestion(f"{path}: expected a string of 1..{MAX_TEXT} characters")
    return found


def moment(found: Any, path: str) -> int:
    """Return an RFC 3339 time in microseconds since 1970, clipped to 1970..2100. Raises BadQuestion."""
    try:
        value = datetime.fromisoformat(text(found, path))
    except ValueError:
        value = datetime.min
    if value.tzinfo is None:
        raise BadQuestion(f"{path}: expected an RFC 3339 time with its offset, such as 2026-01-31T12:00:00Z")
    return min(max((value - _EPOCH) // _MICROSECOND, 0), LATEST_US)


def shown_time(micros: int) -> str:
    """Return the RFC 3339 form of a time in microseconds since 1970."""
    return (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def time_range(found: Any) -> Span:
    """Return the span of a `timeRange` object, None is an open span. Raises BadQuestion."""
    fields = closed(found, ("from", "to"), "timeRange")
    start, end = (
        None if fields.get(key) is None else moment(fields[key], f"timeRange.{key}") for key in ("from", "to")
    )
    if start is not None and end is not None and start >= end:
        raise BadQuestion("timeRange: from must be before to")
    return Span(start, end)


def cursor(found: Any) -> tuple[int, int]:
    """Return the time (microseconds since 1970) and the id of a cursor `<rfc3339>|<id>`. Raises BadQuestion."""
    when, _, number_ = text(found, "cursor").partition("|")
    return moment(when, "cursor"), identifier(number_, "cursor")


def identifier(found: Any, path: str) -> int:
    """Return the id of a record. Raises BadQuestion if the text cannot be an id."""
    if not isinstance(found, str) or not found.isascii() or not found.isdigit() or len(found) > 19:
        raise BadQuestion(f"{path}: not the id of a record")
    return min(int(found), MAX_ID)


def conditions(span: Span, filters: Any, words: SqlDialect) -> Conditions:
    """Return the condition for records in a time span that match `filters`. Raises BadQuestion."""
    found = Conditions("TRUE", ())
    if span.start is not None:
        found = found.also("completed_us >= ?", span.start)
    if span.end is not None:
        found = found.also("completed_us < ?", span.end)
    for key, value in closed(filters, FILTERS, "filters").items():
        if value is not None:
            path = f"filters.{key}"
            found = _attributes(found, value, path, words) if key == "attributes" else _READERS[key](found, value, path)
    return found


def _choices(found: Conditions, value: Any, path: str) -> Conditions:
    if not isinstance(value, list) or len(value) > MAX_CHOICES or any(type(one) is not str for one in value):
        raise BadQuestion(f"{path}: expected a list of at most {MAX_CHOICES} strings")
    if not value:
        return found
    column = LISTS[path.removeprefix("filters.")]
    return found.also(f"{column} IN ({', '.join('?' * len(value))})", *value)


def _statuses(found: Conditions, value: Any, path: str) -> Conditions:
    """Add a condition on HTTP statuses: numbers, and classes of them such as `5xx`."""
    if not isinstance(value, list) or len(value) > MAX_CHOICES:
        raise BadQuestion(f"{path}: expected a list of at most {MAX_CHOICES} numbers")
    texts, values = [], []
    for one in value:
        if isinstance(one, str) and _CLASS.fullmatch(one):
            texts.append("status BETWEEN ? AND ?")
            least = int(one[0]) * 100
            values += [least, least + 99]
        elif type(one) is not int:
            raise BadQuestion(f"{path}: expected a list of numbers, or classes such as 5xx")
        elif not 0 <= one < 1000:
            raise BadQuestion(f"{path}: expected HTTP statuses")
        else:
            texts.append("status = ?")
            values.append(one)
    return found.also(f"({' OR '.join(texts)})", *values) if texts else found


def _trace(found: Conditions, value: Any, path: str) -> Conditions:
    if _TRACE.fullmatch(text(value, path)) is None:
        raise BadQuestion(f"{path}: expected hexadecimal digits")
    return found.also("trace_id = ?", value.lower())


def _payload(found: Conditions, value: Any, path: str) -> Conditions:
    has = "(prompt IS NOT NULL OR completion IS NOT NULL)"
    return found.also(has if flag(value, path) else f"NOT {has}")


def _attributes(found: Conditions, value: Any, path: str, words: SqlDialect) -> Conditions:
    if not isinstance(value, dict) or len(value) > MAX_CHOICES:
        raise BadQuestion(f"{path}: expected an object with at most {MAX_CHOICES} attributes")
    for key, wanted in value.items():
        if not isinstance(wanted, str | int | float | bool):
            raise BadQuestion(f"{path}.{key}: expected a string, a number, true or false")
        shown = str(int(wanted)) if isinstance(wanted, bool) else str(wanted)
        found = found.also(words.equal_attribute, key, shown)
    return found


_READERS: Final[dict[str, Callable[[Conditions, Any, str], Conditions]]] = {
    **dict.fromkeys(LISTS, _choices), "httpStatus": _statuses, "traceId": _trace, "hasPayload": _payload,
}  # fmt: skip
