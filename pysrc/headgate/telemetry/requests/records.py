"""Converts the records that workers write (headgate_engine.log.records) to rows of the database."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

# Columns of the table `requests` without its id, in the order of a row.
COLUMNS: Final = (
    "completed_us", "started_us", "status", "provider", "request_model", "response_model", "input_tokens",
    "output_tokens", "cost_picos", "error", "trace_id", "span_id", "attributes", "prompt",
    "completion",
)  # fmt: skip
Row = tuple[Any, ...]

_FIELDS: Final = 14
# Fields of every log line that are not stored as attributes.
_HEAD: Final = ("level", "time", "scope")
_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}.*")


def row(line: bytes) -> Row | None:
    """Return the row of a record, or None if the line is not a valid record."""
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(found, list) or len(found) != _FIELDS or not isinstance(found[-1], dict):
        return None
    completed, took, status, provider, asked, answered, sent, got, cost, error, parent = found[:11]
    prompt, answer, attributes = found[11:]
    for key in _HEAD:
        attributes.pop(key, None)
    # `traceparent` must be in lower case (https://www.w3.org/TR/trace-context/), but capitals are accepted.
    trace = _PARENT.fullmatch(parent.lower()) if parent else None
    if b"\\u0000" in line:
        texts = (provider, asked, answered, error, prompt, answer)
        provider, asked, answered, error, prompt, answer = (_without_nul(one) for one in texts)
        attributes = _without_nul(attributes)
    return (
        completed, completed - took, status, provider, asked, answered, _known(sent), _known(got), _known(cost), error,
        attributes.get("trace.id") or (trace[1] if trace else None),
        attributes.get("span.id") or (trace[2] if trace else None), orjson.dumps(attributes).decode(),
        prompt, answer,
    )  # fmt: skip


def _without_nul(value: Any) -> Any:
    """Return a value with U+FFFD in place of NUL, which no text of PostgreSQL may contain."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_without_nul(one) for one in value]
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(one) for key, one in value.items()}
    return value


def _known(number: int) -> int | None:
    return number if number >= 0 else None
