"""Hints of servers that want to be left alone."""

from __future__ import annotations

import pytest

from headgate_engine.context.headers import MessageHead
from headgate_engine.link.retry_after import seconds_left, seconds_of

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0), (" 1.5 ", 1.5), ("1m30s", 90.0), ("6m0s", 360.0), ("250ms", 0.25), ("1h", 3600.0), ("1.5s", 1.5),
        ("0", None), ("-1", None), ("", None), ("soon", None), ("5x", None), ("nan", None), ("inf", None),
        ("0s", None), ("1s1m", None), ("9" * 400, None),
    ],
)  # fmt: skip
def test_spans(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ((), None),
        ((("retry-after", "7"),), 7.0),
        ((("retry-after", "Tue, 14 Nov 2023 22:13:30 GMT"),), 10.0),
        ((("retry-after", "Tue, 14 Nov 2023 22:13:10 GMT"), ("retry-after-ms", "1500")), 1.5),
        ((("retry-after", "tomorrow"), ("x-ratelimit-reset", "20")), 20.0),
        ((("x-ratelimit-reset", "1700000042"),), 42.0),
        ((("x-ratelimit-reset", "1600000000"),), None),
        ((("x-ratelimit-reset-requests", "1m"), ("x-ratelimit-reset-tokens", "6s")), 6.0),
        ((("x-ratelimit-reset-tokens-minute", "30"),), 30.0),
        ((("retry-after", "999999999"),), None),
        ((("retry-after", "3"), ("x-ratelimit-reset", "1")), 3.0),
        ((("retry-after", "0"), ("x-ratelimit-reset", "1")), 0.0),
        ((("retry-after-ms", "0"),), 0.0),
        ((("retry-after", "1m30s"),), None),
        ((("retry-after", "1m30s"), ("x-ratelimit-reset", "20")), 20.0),
        ((("retry-after", "-1"), ("retry-after-ms", "-1")), None),
        ((("retry-after", "1e1"),), None),
    ],
)
def test_the_first_usable_hint_counts(fields: tuple[tuple[str, str], ...], seconds: float | None) -> None:
    head = MessageHead()
    for name, value in fields:
        head.add(name, value)
    assert seconds_left(head, NOW) == (None if seconds is None else pytest.approx(seconds))
