import re

from headgate_engine.context.headers import MessageHead

PER_LIMIT: tuple[str, ...]
SPAN: re.Pattern[str]

def seconds_of(text: str) -> float | None:
    """Seconds of a plain number or of a duration such as `1m30s`; None for anything else."""

def seconds_left(head: MessageHead, now: float) -> float | None:
    """Seconds that the first usable hint asks for; None without one. now: Unix time."""
