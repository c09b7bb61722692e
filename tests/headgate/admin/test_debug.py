"""Parameters of the endpoints below /debug."""

from __future__ import annotations

import pytest

from headgate.admin.debug import within


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (None, 10), ("", 10), ("1", 1), ("300", 300), ("0", 10), ("301", 10), ("-5", 10), ("1.5", 10), ("x", 10),
        ("9" * 5000, 10), ("\u0661", 10), ("007", 7),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_the_default(text: str | None, number: int) -> None:
    assert within(text, 1, 300, 10) == number
