"""Log level directives."""

from __future__ import annotations

import logging

import pytest

from headgate.telemetry.levels import OFF, TRACE, BadDirective, Directives


@pytest.mark.parametrize(
    ("texts", "shown"),
    [
        (["info"], "info"),
        (["debug,headgate.a=warn"], "headgate.a=warn,debug"),
        (["info", "headgate.a=debug", "headgate.a=error"], "headgate.a=error,info"),
        (["info", "headgate.a.b=debug,headgate.c=trace"], "headgate.a.b=debug,headgate.c=trace,info"),
        (["WARN"], "warn"),
        (["off"], "off"),
    ],
)
def test_later_clauses_win(texts: list[str], shown: str) -> None:
    found = Directives()
    for text in texts:
        found.add(text)
    assert str(found) == shown


@pytest.mark.parametrize("text", ["", "loud", "module", "module:debug", "=debug", "a b=debug", "info,", "a=loud"])
def test_a_bad_directive_changes_nothing(text: str) -> None:
    found = Directives("warn")
    with pytest.raises(BadDirective):
        found.add(text)
    assert str(found) == "warn"


def test_levels_reach_the_loggers_and_are_taken_back() -> None:
    before = logging.getLogger().level
    try:
        Directives("error,headgate.test.x=trace").apply()
        assert logging.getLogger("headgate.test.x.y").isEnabledFor(TRACE)
        assert not logging.getLogger("headgate.test").isEnabledFor(logging.WARNING)
        Directives("off").apply()
        assert not logging.getLogger("headgate.test.x").isEnabledFor(logging.CRITICAL)
        assert logging.getLogger().level == OFF
    finally:
        logging.getLogger().setLevel(before)
