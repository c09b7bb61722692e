import re

from headgate_engine.context.headers import MessageHead

PER_LIMIT: tuple[str, ...]
NUMBER: re.Pattern[str]
SPAN: re.Pattern[str]

def seconds_of(text: str) -> float | None:
    """Seconds of a plain number or of a duration such as `1m30s`; None for anything else."""

def plain_number(text: str) -> float | None:
    """The value of a number without a sign or a unit, such as `3` or `1.5`; None for anything else."""

def seconds_left(head: MessageHead, now: float) -> float | None:
    """Seconds that the first usable hint asks for; None without one. now: Unix time.

    `retry-after` and `retry-after-ms` may ask for no time at all: 0.
    """
