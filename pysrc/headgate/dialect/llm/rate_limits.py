"""Rate limits in the header fields of each vendor.

Sources: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers,
https://docs.claude.com/en/api/rate-limits#response-headers. Google has no fields for them.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

Fields = tuple[tuple[bytes, bytes], ...]

RESOURCES: Final = ("requests", "tokens")
# Longer than any real limit; what is more is no time.
MOST_SECONDS: Final = 366 * 86400


class Limit(NamedTuple):
    """One limit. `resource` is one of RESOURCES; `reset_s` are seconds until it is full again. None: not told."""

    resource: str
    limit: int | None
    remaining: int | None
    reset_s: int | None


def _span(seconds: int) -> str:
    """Return a time as OpenAI writes it: `6m0s`."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _openai(one: Limit, now: float) -> dict[str, str | int | None]:
    reset = None if one.reset_s is None else _span(one.reset_s)
    return {
        f"x-ratelimit-limit-{one.resource}": one.limit,
        f"x-ratelimit-remaining-{one.resource}": one.remaining,
        f"x-ratelimit-reset-{one.resource}": reset,
    }


def _anthropic(one: Limit, now: float) -> dict[str, str | int | None]:
    reset = None
    if one.reset_s is not None:
        reset = datetime.fromtimestamp(int(now) + one.reset_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        f"anthropic-ratelimit-{one.resource}-limit": one.limit,
        f"anthropic-ratelimit-{one.resource}-remaining": one.remaining,
        f"anthropic-ratelimit-{one.resource}-reset": reset,
    }


WRITERS: Final[dict[str, Callable[[Limit, float], dict[str, str | int | None]]]] = {
    "messages": _anthropic,
    "count_tokens": _anthropic,
    "gemini": lambda one, now: {},
    "gemini_count_tokens": lambda one, now: {},
    "converse": lambda one, now: {},
}


def fields(format: str, limits: list[Limit], now: float | None = None) -> Fields:
    """Return the header fields in which clients of a format look for these limits. `now`: Unix time, in seconds."""
    write = WRITERS.get(format, _openai)
    told = [pair for one in limits for pair in write(one, time.time() if now is None else now).items()]
    return tuple((name.encode(), str(value).encode()) for name, value in told if value is not None)


UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
SPAN: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|h|m|s)")


def _seconds(text: str, now: float) -> int | None:
    """Return the seconds of a time in OpenAI's form (`6m0s`, `120ms`), or until one in Anthropic's (RFC 3339)."""
    found = SPAN.findall(text)
    if found and "".join(number + unit for number, unit in found) == text:
        seconds = sum(float(number) * UNITS[unit] for number, unit in found)
    else:
        try:
            seconds = datetime.fromisoformat(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return None if seconds > MOST_SECONDS else max(math.ceil(seconds), 0)


def wait_of(field: str | None) -> int:
    """Return the seconds of `retry-after` (RFC 9110, section 10.2.3), 0 for none and for a date."""
    told = (field or "").strip()
    return min(int(told), MOST_SECONDS) if told.isascii() and told.isdigit() and len(told) < 16 else 0


def carried(client: str, upstream: str, get: Callable[[str], str | None], now: float | None = None) -> Fields:
    """Return the fields of a provider's refusal in the client's format. `get`: returns a header field of it."""
    by_anthropic = upstream == "messages"
    if (WRITERS.get(client, _openai) is _anthropic) == by_anthropic:
        return ()
    now = time.time() if now is None else now
    found = []
    for resource in RESOURCES:
        pattern = f"anthropic-ratelimit-{resource}-{{}}" if by_anthropic else f"x-ratelimit-{{}}-{resource}"
        limit, remaining, reset = (get(pattern.format(name)) or "" for name in ("limit", "remaining", "reset"))
        if limit or remaining or reset:
            counts = [int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
                      for text in (limit, remaining)]
            found.append(Limit(resource, counts[0], counts[1], _seconds(reset, now)))
    return fields(client, found, now)
