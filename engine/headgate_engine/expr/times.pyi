import datetime
from collections.abc import Callable
from typing import Any

from headgate_engine.expr.values import Duration, Timestamp

UNIT_NS: dict[str, int]
EPOCH: datetime.datetime

def parse_duration(text: str) -> Duration:
    """Return `1h30m`, `-1.5s` as a duration; EvaluationError when it is none."""

def duration_text(value: Duration) -> str:
    """Return seconds with as many decimals as needed, and an `s`."""

def parse_timestamp(text: str) -> Timestamp:
    """Return an RFC 3339 date-time; EvaluationError when it is none."""

def timestamp_text(value: Timestamp) -> str:
    """Return RFC 3339 in UTC with as many decimals as needed."""

FUNCTIONS: dict[tuple[str, bool], tuple[Callable[..., Any], int, int]]
