"""Hints of a 429: `retry-after` (RFC 9110 section 10.2.3) and what LLM providers send
(https://platform.openai.com/docs/guides/rate-limits, https://docs.anthropic.com/en/api/rate-limits)."""

from headgate_engine.context.headers cimport MessageHead

from libc.stdint cimport int64_t

import re
import time

from headgate_engine.lazy_pattern import lazy_pattern

# A number above this is a point in time, not a span: 30 days in seconds.
cdef double LONGEST = 30.0 * 86400
SPAN = lazy_pattern(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
NUMBER = lazy_pattern(r"\d{1,15}(?:\.\d{1,15})?", re.ASCII)
PER_LIMIT = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens", "x-ratelimit-reset-requests-day",
             "x-ratelimit-reset-tokens-minute")


def seconds_of(str text):
    """Seconds of a plain number or of a duration such as `1m30s`; None for anything else."""
    text = text.strip()
    try:
        value = float(text)
    except ValueError:
        found = SPAN.fullmatch(text)
        if not text or found is None:
            return None
        hours, minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
        value = hours * 3600 + minutes * 60 + seconds + thousandths / 1000
    return value if 0.0 < value < 1e12 else None


def plain_number(str text):
    """The value of a number without a sign or a unit, such as `3` or `1.5`; None for anything else."""
    return float(text) if NUMBER.fullmatch(text) is not None else None


def seconds_left(MessageHead head, double now):
    """Seconds that the first usable hint asks for; None without one. now: Unix time.

    `retry-after` and `retry-after-ms` may ask for no time at all: 0.
    """
    text = head.get("retry-after")
    if text is not None:
        value = plain_number(text.strip())
        if value is not None and value <= LONGEST:
            return value
        import email.utils        # costs a start 6 ms, and dates are rare

        try:
            value = email.utils.parsedate_to_datetime(text).timestamp() - now
        except (TypeError, ValueError):
            value = 0.0
        if 0.0 < value <= LONGEST:
            return value
    text = head.get("retry-after-ms")
    value = None if text is None else plain_number(text.strip())
    if value is not None and value / 1000 <= LONGEST:
        return value / 1000
    text = head.get("x-ratelimit-reset")
    value = None if text is None else seconds_of(text)
    if value is not None:
        value = value if value < LONGEST else value - now
        if 0.0 < value <= LONGEST:
            return value
    given = [seconds_of(head.get(name)) for name in PER_LIMIT if head.get(name) is not None]
    given = [value for value in given if value is not None and value <= LONGEST]
    return min(given) if given else None


cdef int64_t retry_after_ns(MessageHead head) except -1:
    seconds = seconds_left(head, time.time())
    return NO_HINT if seconds is None else <int64_t>(<double>seconds * 1e9)
