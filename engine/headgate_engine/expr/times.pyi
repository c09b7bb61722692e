import datetime
from collections.abc import Callable
from typing import Any

from headgate_engine.expr.values import Duration, Timestamp

UNIT_NS: dict[str, int]
EPOCH: datetime.datetime

def parse_duration(text: str) -> Duration:
    """Return the duration of a string such as `1h30m` or `-1.5s`. Raises EvaluationError if it is not one."""

def duration_text(value: Duration) -> str:
    """Return a duration in seconds, with as many decimals as needed and the suffix `s`."""

def parse_timestamp(text: str) -> Timestamp:
    """Return the timestamp of an RFC 3339 date-time. Raises EvaluationError if the string is not one."""

def timestamp_text(value: Timestamp) -> str:
    """Return a timestamp as an RFC 3339 date-time in UTC, with as many decimals as needed."""

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
