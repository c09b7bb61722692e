"""How collectors say when to come back. Exports themselves: tests/end_to_end/test_otlp_failures.py."""

from __future__ import annotations

import pytest

from headgate.policy.otlp.transport import retry_after

NOW = 1_767_225_600.0  # Thu, 01 Jan 2026 00:00:00 GMT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None), ("3", 3.0), ("0", 0.0), ("Thu, 01 Jan 2026 00:00:05 GMT", 5.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0), ("soon", None), ("9" * 400, 999999.0),
    ],
)  # fmt: skip
def test_when_to_come_back(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds
